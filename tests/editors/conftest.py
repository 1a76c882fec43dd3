"""Real editors for tests: installed on demand, one session of each, never skipped
for any other reason than that a registry does not deliver."""

import base64
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from codekv.config import data_dir
from codekv.testing.service import read_journal

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOOLS = ROOT / ".tools"
IMAGES = ROOT / "docs" / "images"

SAMPLE = """\
class Cart:
    def __init__(self):
        self.items = []

    def add(self, name, price, quantity=1):
        self.items.append((name, price, quantity))

    def total(self):
        """

RULES = [
    {"after": "    ret", "text": "urn a + b", "others": ["urn a - b", "urn a * b"]},
    {"after": "print(", "text": '"hi", x)'},
    {"after": "größe = ", "text": "länge * 2  # 𝛑r²"},
    {"after": "漢字 = ", "text": "日本語ひらがな + 1"},
    {"after": "if x:", "text": "\n        y = 1\n        z = 2"},
    {"after": "\tif t:", "text": "\n\t\treturn t"},
    {"after": "slow", "text": "ly_but_surely()", "delay_ms": 1500},
    {"after": "é = so", "text": "rted(x)", "from_line_start": True},
]


def until(what, condition, seconds=60.0):
    """Wait for a condition and give what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s for {what}")


class Backend:
    """A scripted server to be started by an editor, and what happened in it."""

    def __init__(self, home, load_ms=0):
        self._journal = home / "journal.jsonl"
        self._num_old = 0
        rules = home / "rules.json"
        values = {"rules": RULES, "journal": str(self._journal), "load_ms": load_ms}
        rules.write_text(json.dumps(values), "utf-8")
        self.command = [sys.executable, str(HERE / "ruled_server.py"), str(rules)]
        self.env = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        for kind in ("CONFIG", "CACHE", "DATA", "STATE"):
            self.env[f"XDG_{kind}_HOME"] = str(home / "xdg" / kind.lower())

    def forget(self):
        """Look only at what happens from now on."""
        self._num_old = len(read_journal(self._journal))

    def events(self, kind):
        new = read_journal(self._journal)[self._num_old :]
        return [each for each in new if each["event"] == kind]

    def wait_for_feedback(self, **wanted):
        """Wait until an item's feedback has these values."""

        def found():
            return any(wanted.items() <= e.items() for e in self.events("feedback"))

        until(f"feedback {wanted}", found)


def install(part):
    """Run the install script, which does nothing where all is there."""
    log = TOOLS / f"install-{part}.log"
    TOOLS.mkdir(exist_ok=True)
    with log.open("w", encoding="utf-8") as out:
        command = [str(HERE / "install.sh"), part]
        env = {**os.environ, "PYTHON": sys.executable}
        done = subprocess.run(command, stdout=out, stderr=out, env=env, check=False)
    if done.returncode != 0:
        last = log.read_text("utf-8").strip().splitlines()[-1:]
        reason = f"{part} could not be installed: {last}"
        if os.environ.get("CODEKV_EDITORS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)


class RealBackend:
    """The server as users start it, with the models that are on this machine."""

    def __init__(self, home):
        self.command = [sys.executable, "-m", "codekv", "serve"]
        self.env = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        for kind in ("CONFIG", "CACHE", "STATE"):
            self.env[f"XDG_{kind}_HOME"] = str(home / "xdg" / kind.lower())
        self.env["XDG_DATA_HOME"] = str(data_dir().parent)
        # The same model on every machine, and no question about a larger one.
        options = home / "xdg" / "config" / "codekv" / "codekv.toml"
        options.parent.mkdir(parents=True)
        options.write_text('[model]\nname = "qwen2.5-coder-0.5b"\n', "utf-8")


def picture(name, home):
    """Where a picture goes: into the documentation only if that is asked for."""
    folder = IMAGES if os.environ.get("CODEKV_SCREENSHOTS") else home
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


@pytest.fixture(scope="session")
def real_backend(tmp_path_factory):
    return RealBackend(tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="session")
def sample():
    return SAMPLE


@pytest.fixture(scope="session")
def picture_path():
    return picture


@pytest.fixture(scope="session")
def backend_factory():
    return Backend


@pytest.fixture(scope="session")
def installer():
    return install


@pytest.fixture(scope="session")
def waiter():
    return until


METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def stub(folder, name, version, extra=()):
    """Write a wheel without code, and with `extra` files at its top."""
    safe = re.sub(r"[-_.]+", "_", name)
    about = f"{safe}-{version}.dist-info"
    files = {
        f"{about}/METADATA": METADATA.format(name=name, version=version),
        f"{about}/WHEEL": WHEEL,
        **dict(extra),
    }
    record = ""
    path = folder / f"{safe}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for inner, text in files.items():
            digest = hashlib.sha256(text.encode()).digest()
            mark = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            record += f"{inner},sha256={mark},{len(text.encode())}\n"
            wheel.writestr(inner, text)
        wheel.writestr(f"{about}/RECORD", f"{record}{about}/RECORD,,\n")


def dependencies():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    block = text[
        text.index("dependencies = [") : text.index("]\n", text.index("dependencies"))
    ]
    return re.findall(r'"([\w.-]+)>=', block)


@pytest.fixture(scope="session")
def offline_packages(tmp_path_factory):
    """A folder of wheels: stubs of the server's dependencies, with the right names and
    versions, which lead to the packages that these tests run with."""
    folder = tmp_path_factory.mktemp("all packages")
    paths = [p for p in sys.path if p.endswith("site-packages")]
    link = "".join(f"{path}\n" for path in paths)
    # Last of the names, so that the server's own wheel is found before them.
    extra = {"zz_tests.pth": link}.items()
    for name in dependencies():
        version = importlib.metadata.version(name)
        stub(folder, name, version, extra if name == "torch" else ())
    return folder
