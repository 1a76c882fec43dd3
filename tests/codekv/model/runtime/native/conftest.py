import pytest

from codekv.model.runtime.native import compiler
from codekv.model.runtime.native.attention_shape import AttentionShape
from codekv.model.runtime.native.dots import Dot
from codekv.model.runtime.native.formats import FORMATS
from codekv.model.runtime.native.kernels import build
from codekv.model.runtime.native.target import TARGETS, KernelTarget, usable

SHAPE = AttentionShape(heads=4, kv_heads=2, head_dim=16, eps=1e-6)

MACHINE, FEATURES = compiler.this_machine()
HERE = usable(MACHINE.triple, FEATURES)
FUSED = bool(FEATURES.get("fma")) or MACHINE.triple.startswith(("aarch64", "arm64"))
# The structure of other widths, with the product written out in plain IR: what the
# instructions of a processor that is not here would compute.
EMULATED = {
    "wide": KernelTarget("wide", Dot(16), (4, 1), FUSED, FUSED, ""),
    "narrow": KernelTarget("narrow", Dot(4), (2, 1), FUSED, FUSED, ""),
}
RUNNABLE = [name for name in HERE if name != "portable"] + ["portable", *EMULATED]


def target_of(name):
    return EMULATED.get(name) or TARGETS[name]


@pytest.fixture(scope="session")
def objects(tmp_path_factory):
    return tmp_path_factory.mktemp("objects")


@pytest.fixture(scope="session")
def kernels_of(objects):
    """Kernels of one target with all formats; compiled once in a test run."""
    made = {}

    def get(name):
        if name not in made:
            forms = list(FORMATS.values())
            made[name] = build(target_of(name), forms, SHAPE, MACHINE, objects)
        return made[name]

    return get
