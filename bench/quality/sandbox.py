"""Run a generated program's tests: another process, limits, no network.

Generated code is untrusted: it gets a folder that is deleted, bounded time and memory,
no sockets and no further processes. Enough for what a small model writes by accident;
not a jail against an attacker.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS = 5
"""An endless loop in a wrong answer is ended then."""

MEMORY_MB = 1024
"""A wrong answer that allocates without end is stopped there."""


_GUARD = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
def refuse(event, args):
    if event.startswith(("socket.", "subprocess.", "os.exec", "os.fork", "os.spawn",
                         "os.system", "os.posix_spawn", "os.kill", "shutil.", "ctypes.",
                         "os.remove", "os.rename", "os.rmdir", "os.chmod")):
        raise PermissionError(event)
sys.addaudithook(refuse)
sys.setrecursionlimit(10000)
exec(compile(open("program.py", encoding="utf-8").read(), "program.py", "exec"),
     {{"__name__": "__main__"}})
"""


def passes(program: str, seconds: int = SECONDS) -> bool:
    """Whether a program ends without an error within its limits."""
    guard = _GUARD.format(memory=MEMORY_MB << 20, seconds=seconds)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "program.py").write_text(program, "utf-8")
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", guard],
                cwd=folder,
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds + 2,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0
