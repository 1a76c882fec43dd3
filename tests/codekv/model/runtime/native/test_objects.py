"""What the compiled objects of all targets look like, also of those that cannot run."""

import re
import struct

import pytest

from codekv.model.runtime.native.attention_shape import AttentionShape
from codekv.model.runtime.native.compiler import Machine, optimised
from codekv.model.runtime.native.formats import FORMATS
from codekv.model.runtime.native.kernels import text
from codekv.model.runtime.native.target import TARGETS

X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
MACHINES = {
    "avx512-vnni": Machine(X86, "icelake-server", ""),
    "avx-vnni": Machine(X86, "alderlake", ""),
    "avx2": Machine(X86, "haswell", ""),
    "neon-dot": Machine(ARM, "neoverse-n1", ""),
    "portable": Machine(X86, "x86-64", ""),
}
INSTRUCTIONS = {
    "avx512-vnni": r"vpdpbusd.*%zmm",
    "avx-vnni": r"vpdpbusd.*%ymm",
    "avx2": r"vpmaddubsw",
    "neon-dot": r"\bsdot\b",
    "portable": r"\bmulps\b",
}
# Large heads: what an 8B model has.
SHAPE = AttentionShape(heads=32, kv_heads=8, head_dim=128, eps=1e-6)
FORMS = [FORMATS[name] for name in ("Q5_0", "Q6_K", "Q8_0")]
MAX_FRAME = 4096


def undefined_symbols(data):
    """Names that an ELF object expects from elsewhere."""
    (sections,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", data, sections + number * size)
        for number in range(count)
    ]
    names = set()
    for header in headers:
        if header[1] != 2:  # SHT_SYMTAB
            continue
        strings = headers[header[6]][4]
        for place in range(header[4] + 24, header[4] + header[5], 24):
            name, _, _, section = struct.unpack_from("<IBBH", data, place)
            if section == 0:
                end = data.index(b"\0", strings + name)
                names.add(data[strings + name : end].decode())
    return names


@pytest.mark.parametrize("name", list(MACHINES))
def test_an_object_needs_nothing_and_keeps_frames_small(name):
    machine = MACHINES[name]
    module, target = optimised(text(TARGETS[name], FORMS, SHAPE), machine)
    assert undefined_symbols(target.emit_object(module)) == set()
    lines = target.emit_assembly(module)
    pattern = r"subq\s+\$(\d+), %rsp|sub\s+sp, sp, #(\d+)(?!, lsl)"
    frames = [int(a or b) for a, b in re.findall(pattern, lines)]
    assert frames
    assert max(frames) <= MAX_FRAME
    assert "lsl #12" not in "".join(re.findall(r"sub\s+sp, sp.*", lines))
    assert re.search(INSTRUCTIONS[name], lines)
