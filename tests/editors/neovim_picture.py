"""Draw `docs/images/neovim.svg`: a real Neovim with the real model in a terminal.

Needs `tmux`; `python tests/editors/neovim_picture.py`
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
SAMPLE = """\
class Cart:
    def __init__(self):
        self.items = []

    def add(self, name, price, quantity=1):
        self.items.append((name, price, quantity))

    def total(self):
        """
WIDTH, HEIGHT = 84, 18
LIMIT_SECONDS = 240


def tmux(*arguments):
    command = ["tmux", "-L", "codekv-picture", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wait(shown):
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        screen = tmux("capture-pane", "-e", "-p", "-t", "picture")
        if shown(screen):
            return screen
        time.sleep(0.1)
    raise TimeoutError(screen)


def start(folder):
    (folder / "cart.py").write_text(SAMPLE, "utf-8")
    command = repr([sys.executable, "-m", "codekv", "serve"])
    setup = folder / "setup.lua"
    setup.write_text(
        f"vim.opt.runtimepath:prepend('{ROOT}/editors/neovim')\n"
        "vim.o.termguicolors = true\n"
        "vim.o.laststatus = 2\n"
        "vim.api.nvim_set_hl(0, 'Normal', {})\n"
        "vim.o.statusline = \" %f %= %{v:lua.require'codekv'.statusline()} \"\n"
        f"require('codekv').setup({{ cmd = {{ {command[1:-1]} }} }})\n",
        "utf-8",
    )
    nvim = ROOT / ".tools" / "nvim" / "bin" / "nvim"
    words = [str(nvim), "--clean", "-n", "-c", f"luafile {setup}", "cart.py"]
    size = ["-x", str(WIDTH), "-y", str(HEIGHT)]
    env = ["-e", f"PYTHONPATH={ROOT}", "-e", f"XDG_STATE_HOME={folder}"]
    env += ["-e", "COLORTERM=truecolor"]
    where = ["-d", "-s", "picture", "-c", str(folder)]
    tmux("new-session", *where, *size, *env, shlex.join(words))


def draw(screen):
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere)
        console.print(Text.from_ansi(screen.rstrip("\n")))
        svg = console.export_svg(title="cart.py - Neovim")
    # No fonts from elsewhere: the picture must not ask the network for anything.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def main():
    with tempfile.TemporaryDirectory() as name:
        start(Path(name))
        try:
            wait(lambda screen: "codekv: ready" in screen)
            tmux("send-keys", "-t", "picture", "GA", "r", "e", "t")
            wait(lambda screen: re.search(r"ret\S*u.*rn.*\S", screen))
            wait(lambda screen: "codekv: ready" in screen)
            screen = tmux("capture-pane", "-e", "-p", "-t", "picture")
        finally:
            tmux("kill-server")
    target = ROOT / "docs" / "images" / "neovim.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(draw(screen), "utf-8")


if __name__ == "__main__":
    main()
