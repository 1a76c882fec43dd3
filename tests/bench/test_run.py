"""What a run is made of before anything is measured."""

from dataclasses import replace

import pytest

from bench.run import Options, absent, plan
from bench.traces.generators import NEEDS, TRACES
from codekv.errors import UsageError

SHORT = "export function f{i}(a: number) {{\n  return a + {i} * a;\n}}\n\n"


def write(folder, name, num_functions, filler=0):
    text = "// " + "x" * 60 + "\n"
    body = "".join(SHORT.format(i=i) for i in range(num_functions))
    (folder / name).write_text(text * filler + body)


@pytest.fixture
def options(tmp_path):
    for number in range(6):
        write(tmp_path, f"small{number}.ts", 2, filler=34)
    return Options(root=tmp_path, names=("jump", "type-line"), files=2, seed=1)


def test_a_trace_without_a_place_is_named_with_what_it_needs(options):
    with pytest.raises(UsageError, match=r"jump: left out.*4,000 bytes.*type-line: .*"):
        plan(options)
    write(options.root, "deep.ts", 2, filler=60)
    built = plan(options)
    assert [trace.name for trace in built] == ["type-line"]
    (line,) = absent(options, built)
    assert line.startswith("jump: left out")
    assert "four functions" in line


def test_a_trace_without_a_place_in_the_sample_looks_in_all_files(options):
    write(options.root, "a_large_one.ts", 90)
    for seed in range(8):
        built = plan(replace(options, seed=seed, files=1))
        assert {trace.name for trace in built} == {"jump", "type-line"}
        assert absent(options, built) == ()


def test_the_needs_are_those_of_traces_that_exist():
    assert set(NEEDS) <= set(TRACES)
