import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.completion.privacy import Privacy, Silence, holds_only_secrets, path_of
from codekv.config import PrivacyConfig
from codekv.text.snapshot import Snapshot


def snapshot(uri, text="x = 1\n", language="python"):
    return Snapshot.from_text(uri, 1, language, text)


@pytest.mark.parametrize(
    "path",
    [
        "/w/.env", "/w/.env.local", "/w/prod.env", "/w/.ENV", "/w/a/b/id_rsa",
        "/w/id_ed25519.pub", "/w/server.key", "/w/cert.PEM", "/w/secrets.yml",
        "/w/app-secret.yaml", "/w/aws_credentials.json", "/home/u/.ssh/config",
        "/home/u/.aws/credentials", "/w/.netrc", "/w/x.tfvars", "/w/.npmrc",
        "/home/u/.docker/config.json", "/w/store.kdbx",
    ],
)  # fmt: skip
def test_files_that_hold_secrets_by_their_name_are_out(path):
    privacy = Privacy(PrivacyConfig())
    assert privacy.silence(snapshot(f"file://{path}")) is Silence.SECRET
    assert privacy.silence_of_path(path) is Silence.SECRET


@pytest.mark.parametrize(
    "path",
    ["/w/.env.example", "/w/credentials.py", "/w/secrets.py", "/w/environment.py",
     "/w/secret_santa.py", "/w/keys.py", "/w/.github/workflows/ci.yml", "/w/a.json"],
)  # fmt: skip
def test_programs_and_templates_are_in(path):
    assert Privacy(PrivacyConfig()).silence(snapshot(f"file://{path}")) is None


def test_a_percent_encoded_name_and_a_fragment_hide_nothing():
    privacy = Privacy(PrivacyConfig())
    for uri in ("file:///w/%2Eenv", "file:///w/.env#2", "vscode-remote://h/w/.env?q"):
        assert privacy.silence(snapshot(uri)) is Silence.SECRET


def test_a_key_without_a_telling_name_is_out_by_its_content():
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n"
    assert holds_only_secrets(key.encode(), "python")
    passwords = "# mine\nDB_PASSWORD=hunter2hunter2\nUSER=me\n\n"
    assert holds_only_secrets(passwords.encode(), "plaintext")
    assert holds_only_secrets(b"export API_KEY='0123456789'\n", "shellscript")


def test_a_program_with_a_literal_like_a_key_is_in():
    code = (
        b'KEY = """-----BEGIN PRIVATE KEY-----"""\ndef f():\n    API_KEY = "12345678"\n'
    )
    assert not holds_only_secrets(code, "python")
    assert not holds_only_secrets(b"API_KEY=12345678\nfor i in 1 2; do\n", "sh")
    assert not holds_only_secrets(b"name: CI\nruns-on: linux\n", "yaml")


@given(st.binary(max_size=200), st.sampled_from(["python", "yaml", ""]))
def test_any_content_can_be_judged(data, language):
    assert holds_only_secrets(data, language) in (True, False)


def test_globs_languages_and_sizes_come_from_the_configuration():
    config = PrivacyConfig(
        exclude=("generated/", "*.min.js", "!ok.pem", "["),
        disabled_languages=("Markdown",),
        max_file_kb=1,
        max_line_kb=1,
    )
    privacy = Privacy(config)
    assert privacy.silence(snapshot("file:///w/generated/a.py")) is Silence.EXCLUDED
    assert privacy.silence(snapshot("file:///w/x.min.js")) is Silence.EXCLUDED
    assert privacy.silence(snapshot("file:///w/ok.pem")) is None
    note = snapshot("file:///w/a.md", language="markdown")
    assert privacy.silence(note) is Silence.LANGUAGE
    large = snapshot("file:///w/a.py", "x\n" * 600)
    assert privacy.silence(large) is Silence.TOO_LARGE
    long_line = Privacy(PrivacyConfig(max_line_kb=1))
    text = "y" * 1025 + "\n" + "x\n" * 10
    assert long_line.silence(snapshot("file:///w/a.py", text)) is Silence.LONG_LINE
    assert long_line.silence(snapshot("file:///w/a.py", text[1:])) is None


def test_the_workspaces_ignore_file_counts_and_cannot_let_secrets_in(tmp_path):
    (tmp_path / ".codekvignore").write_text("/vendor/\n# note\n!.env\n")
    privacy = Privacy(PrivacyConfig(), tmp_path)
    inside = tmp_path.as_uri()
    assert privacy.silence(snapshot(f"{inside}/vendor/a.py")) is Silence.EXCLUDED
    assert privacy.silence(snapshot(f"{inside}/sub/vendor/a.py")) is None
    assert privacy.silence(snapshot(f"{inside}/.env")) is Silence.SECRET


def test_paths_of_windows_and_untitled_documents_are_understood():
    assert path_of("file:///c%3A/w/a.py") == "/c:/w/a.py"
    assert path_of("untitled:Untitled-1") == "Untitled-1"
    assert path_of("/w/a.py") == "/w/a.py"
