import os
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from codekv.config import Config, apply
from codekv.config_files import PROJECT_RULES, load, read_file, restrict
from codekv.errors import ConfigError
from codekv.files import MAX_STARS, bounded_patterns


@pytest.fixture
def user(tmp_path, monkeypatch):
    folder = tmp_path / "config" / "codekv"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.parent))
    return folder


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def config_of(values):
    config, problems = apply(Config(), values, "test")
    assert not problems
    return config


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("codekv.toml", "[completion]\nmax_lines = 3\n"),
        ("codekv.yaml", "completion:\n  max_lines: 3\n"),
        ("codekv.yml", "completion: {max_lines: 3}\n"),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_changes_nothing(user, project, name, text, mark):
    for folder in (user, project):
        (folder / name).write_text(mark + text, "utf-8")
    for workspace in (None, project):
        config, problems = load(workspace)
        assert config.completion.max_lines == 3
        assert problems == ()


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"model": {"name": "/models/evil.gguf"}}, "model.name"),
        ({"model": {"name": "evil.gguf"}}, "model.name"),
        ({"model": {"name": "~/evil"}}, "model.name"),
        ({"model": {"name": "stranger/model"}}, "model.name"),
        ({"model": {"name": "..\\evil"}}, "model.name"),
        ({"model": {"runtime": "transformers"}}, "model.runtime"),
        ({"model": {"threads": 64}}, "model.threads"),
        ({"kvcache": {"max_length": 131072}}, "kvcache.max_length"),
        ({"kvcache": {"memory_mb": 10**6}}, "kvcache.memory_mb"),
        ({"kvcache": {"disk_mb": 0}}, "kvcache.disk_mb"),
        ({"kvcache": {"purge_strategy": {"interval": 1}}},
         "kvcache.purge_strategy.interval"),
        ({"privacy": {"exclude": ["!*.pem"]}}, "privacy.exclude"),
        ({"privacy": {"log_text": True}}, "privacy.log_text"),
        ({"privacy": {"max_file_kb": 10**6}}, "privacy.max_file_kb"),
        ({"server": {"log_file": "/tmp/x"}}, "server.log_file"),
        ({"server": {"metrics_file": "/tmp/x"}}, "server.metrics_file"),
        ({"server": {"metrics_port": 80}}, "server.metrics_port"),
        ({"server": {"tcp_token": "x"}}, "server.tcp_token"),
        ({"trust": {"projects": ["/"]}}, "trust.projects"),
    ],
)  # fmt: skip
def test_what_a_project_may_not_set_is_not_taken(values, key):
    config, refused = restrict(Config(), config_of(values))
    assert config == Config()
    assert refused == (key,)


@pytest.mark.parametrize(
    "values",
    [
        {"model": {"name": "smollm2-135m", "offline": True}},
        {"kvcache": {"max_length": 512, "disk": False, "reuse": "exact"}},
        {"completion": {"max_tokens": 9, "latency_budget_ms": 900}},
        {"privacy": {"exclude": ["*.sql"], "max_file_kb": 5}},
    ],
)
def test_what_concerns_the_project_alone_is_taken(values):
    assert restrict(Config(), config_of(values)) == (config_of(values), ())


def test_a_project_adds_to_what_the_user_keeps_out():
    user = config_of({"privacy": {"exclude": ["!a.key"], "disabled_languages": ["c"]}})
    wanted = config_of({"privacy": {"exclude": ["*"], "disabled_languages": ["go"]}})
    config, refused = restrict(user, wanted)
    assert refused == ()
    assert config.privacy.exclude == ("*", "!a.key")
    assert config.privacy.disabled_languages == ("go", "c")
    assert restrict(user, Config())[0] == user


LEAVES = [
    f"{table}.{name}"
    for table, field in Config.model_fields.items()
    for name in field.annotation.model_fields
    if (table, name) != ("kvcache", "purge_strategy")
]


def test_the_rules_name_options_that_exist():
    assert set(PROJECT_RULES) <= set(LEAVES)


def test_the_users_consent_lets_a_project_set_everything(user, project):
    (project / "codekv.toml").write_text("[server]\nmetrics_port = 9100\n")
    config, problems = load(project)
    assert config.server.metrics_port == 0
    assert len(problems) == 1
    assert "trust.projects" in str(problems[0])
    assert "server.metrics_port" in str(problems[0])
    for named in (project, project.parent):
        (user / "codekv.toml").write_text(f"[trust]\nprojects = [{str(named)!r}]\n")
        config, problems = load(project)
        assert config.server.metrics_port == 9100
        assert problems == ()
    for named in ("relative", str(project / "deeper"), str(project) + "x"):
        (user / "codekv.toml").write_text(f"[trust]\nprojects = [{named!r}]\n")
        assert load(project)[0].server.metrics_port == 0


def test_a_link_is_no_consent(user, project, tmp_path):
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    (user / "codekv.toml").write_text(f"[trust]\nprojects = [{str(trusted)!r}]\n")
    (trusted / "link").symlink_to(project, target_is_directory=True)
    (project / "codekv.toml").write_text("[server]\nmetrics_port = 9100\n")
    assert load(trusted / "link")[0].server.metrics_port == 0


BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n"
    for i in range(24)
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("codekv.yaml", BOMB),
        ("codekv.yaml", "model: !!python/object/apply:os.system [id]\n"),
        ("codekv.yaml", "x: !!timestamp abc\n"),
        ("codekv.yaml", "x: !!bool maybe\n"),
        ("codekv.yaml", "x: 2020-99-99\n"),
        ("codekv.yaml", "[" * 20_000),
        ("codekv.toml", "a = " + "[" * 20_000),
        ("codekv.toml", "a = '" + "x" * 70_000 + "'"),
        ("codekv.toml", "\0"),
    ],
)
def test_a_malicious_file_is_one_line_and_costs_nothing_else(user, project, name, text):
    (project / name).write_text(text)
    config, problems = load(project)
    assert config == Config()
    assert len(problems) == 1
    assert "\n" not in str(problems[0])
    assert len(str(problems[0])) < 400


def test_what_is_no_file_is_not_opened(user, project, tmp_path):
    os.mkfifo(project / "codekv.toml")
    (project / "codekv.yaml").symlink_to("/dev/zero")
    (project / "codekv.yml").mkdir()
    assert load(project) == (Config(), ())
    for name in ("codekv.toml", "codekv.yaml"):
        with pytest.raises(ConfigError):
            read_file(project / name)


def test_a_link_out_of_the_project_is_not_read(user, project, tmp_path):
    secret = tmp_path / "secret.toml"
    secret.write_text("hunter2 = [")
    (project / "codekv.toml").symlink_to(secret)
    _, problems = load(project)
    assert len(problems) == 1
    assert "hunter2" not in str(problems[0])
    assert "link" in str(problems[0])


def assert_one_line(text):
    assert text
    assert "\n" not in text


texts = st.text(st.characters(codec="utf-8"), max_size=200)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(st.one_of(texts, values.map(yaml.safe_dump)), st.sampled_from([".toml", ".yml"]))
def test_any_text_is_read_or_refused(tmp_path_factory, text, suffix):
    path = tmp_path_factory.mktemp("any") / f"codekv{suffix}"
    path.write_bytes(text.encode())
    try:
        found = read_file(path)
    except ConfigError as error:
        assert_one_line(str(error))
        return
    config, _ = apply(Config(), found, "any")
    restricted, _ = restrict(Config(), config)
    assert restrict(Config(), restricted) == (restricted, ())


@given(st.lists(st.text("ab*/!?[]#. ", max_size=12), max_size=5))
def test_bounded_patterns_have_few_stars(lines):
    for pattern in bounded_patterns(lines):
        kept = pattern.removeprefix("!").removeprefix("/")
        while kept.startswith("**/"):
            kept = kept[3:]
        assert len(re.findall(r"\*+", kept)) <= MAX_STARS


@given(
    st.text("ab*", min_size=1, max_size=9),
    st.text("ab/", min_size=1, max_size=9),
)
def test_a_bounded_pattern_keeps_out_at_least_what_it_kept_out_before(pattern, path):
    import pathspec

    before = pathspec.GitIgnoreSpec.from_lines([pattern])
    after = pathspec.GitIgnoreSpec.from_lines(bounded_patterns([pattern]))
    if before.match_file(path):
        assert after.match_file(path)


def test_patterns_that_anybody_writes_stay_as_they_are():
    lines = [
        "*.o",
        "/build/",
        "**/build/**/*.o",
        "!keep.o",
        "*credential*.json",
        "a*b*",
    ]
    assert bounded_patterns(lines) == tuple(lines)
    assert bounded_patterns(["# note", "", "  "]) == ()
    assert bounded_patterns(["*a*a*a*b"]) == ("*a*",)
    assert bounded_patterns(["!*a*a*a*b"]) == ()
