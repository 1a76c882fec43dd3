"""The Emacs client in a real Emacs, without a screen."""

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.editor

HERE = Path(__file__).parent
CLIENT = HERE.parents[1] / "editors" / "emacs"


def test_ghost_text_is_shown_and_taken(installer, backend_factory, tmp_path):
    installer("emacs")
    backend = backend_factory(tmp_path)
    env = {**os.environ, **backend.env, "CODEKV_CMD": json.dumps(backend.command)}
    command = ["emacs", "--batch", "-Q", "-L", str(CLIENT)]
    done = subprocess.run(
        [*command, "-l", str(HERE / "emacs_steps.el")],
        env={**env, "LC_ALL": "C.UTF-8"},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    line = "s = '𝛑😀'; größe = "
    assert json.loads(done.stdout) == {
        "shown": [line, "länge * 2  # 𝛑r²"],
        "word": [line + "länge ", "* 2  # 𝛑r²"],
        "all": [line + "länge * 2  # 𝛑r²", None],
        "bracket": ['print("hi", x)', None],
        "line": ["if x:\n        y = 1", "\n        z = 2"],
        "dismissed": ["if x:\n        y = 1", None],
    }
    backend.wait_for_feedback(kind="accepted", item="größe =-16")
    backend.wait_for_feedback(kind="partially_accepted", item="größe =-16", bytes=7)
