"""The command line: names of commands, exit codes, one line per failure.

A command's module is imported when the command is called, so that `--help` and the
light commands never wait for torch.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from codekv import __version__
from codekv.errors import CodekvError, UsageError

COMMANDS: dict[str, str] = {
    "bench": "codekv.commands.bench:bench",
    "cache": "codekv.commands.cache:cache",
    "kv": "codekv.commands.kv:kv",
    "serve": "codekv.commands.serve:serve",
    "complete": "codekv.commands.complete:complete",
    "eval": "codekv.commands.eval:evaluate",
    "doctor": "codekv.commands.doctor:doctor",
    "model": "codekv.commands.model:model",
    "top": "codekv.commands.top:top",
}
"""Name of each command and where it is; `--help` lists them in this order."""

EXIT_FAILED = 1
# The code that shells and click use for a wrong command line.
EXIT_USAGE = 2


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None for a name that is not in the table."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
)
@click.version_option(__version__)
def cli() -> None:
    """Code completion on your own machine, with a KV cache that follows the code."""


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code; never raises for a mistake."""
    try:
        result = cli.main(args=arguments, prog_name="codekv", standalone_mode=False)
    except UsageError as error:
        return _fail(str(error), EXIT_USAGE)
    except CodekvError as error:
        return _fail(str(error), EXIT_FAILED)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("stopped; nothing was left half done", EXIT_FAILED)
    except BrokenPipeError:
        # The reader of our output is gone: there is nobody to tell.
        sys.stderr.close()
        return EXIT_FAILED
    except OSError as error:
        # A file or folder of the user's that no command had a better line for.
        return _fail(f"{error.filename or 'system'}: {error.strerror or error}", 1)
    # click returns the code given to `Context.exit`, and a command's own result.
    return result if isinstance(result, int) else 0


def main() -> None:
    """Console script."""
    sys.exit(run())


def _fail(message: str, code: int) -> int:
    click.echo(f"codekv: {' '.join(message.split())}", err=True)
    return code
