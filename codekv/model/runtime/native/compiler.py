"""IR text becomes machine code, by llvmlite, and is remembered on disk.

The object file is kept for the owner alone, named after everything that it depends on,
and begins with its own digest: what was cut short or changed is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import llvmlite
import llvmlite.binding as llvm

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# SHA-256.
_DIGEST_BYTES = 32
# Owner only: what is read here is run.
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Machine:
    """What code is generated for.

    Attributes:
        triple: LLVM's name of processor family and system.
        cpu: LLVM's name of the processor.
        features: As LLVM takes them: `+avx2,-avx512f`.
    """

    triple: str
    cpu: str
    features: str


@dataclass(frozen=True, slots=True)
class Code:
    """Compiled functions by name; `owner` keeps them in memory."""

    addresses: dict[str, int]
    owner: Any


def this_machine() -> tuple[Machine, dict[str, bool]]:
    """The processor that runs this program, and its features."""
    features = llvm.get_host_cpu_features()
    machine = Machine(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten()
    )
    return machine, dict(features)


def optimised(text: str, machine: Machine) -> tuple[Any, Any]:
    """Parse IR and run LLVM's passes over it.

    Returns:
        The module, and the target that makes code of it.

    Raises:
        RuntimeError: The text is no valid IR, or the target is not built in.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    # The code is loaded wherever there is room, as a JIT's is.
    target = llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=3, jit=True
    )
    parsed = llvm.parse_assembly(text)
    parsed.triple = machine.triple
    parsed.data_layout = str(target.target_data)
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(parsed, builder)
    return parsed, target


def compile_object(text: str, machine: Machine) -> bytes:
    """Compile IR to an object file.

    Raises:
        RuntimeError: See `optimised`.
    """
    parsed, target = optimised(text, machine)
    made: bytes = target.emit_object(parsed)
    return made


def load(text: str, machine: Machine, names: Iterable[str], folder: Path) -> Code:
    """Get the functions of an IR module, from the folder or by compiling.

    Args:
        text: The module.
        machine: This one.
        names: Functions whose addresses are wanted.
        folder: Keeps objects; one that cannot be written only costs time.

    Raises:
        RuntimeError: The text does not compile.
    """
    key = "\n".join(
        (
            text,
            machine.triple,
            machine.cpu,
            machine.features,
            llvmlite.__version__,
            str(llvm.llvm_version_info),
        )
    )
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.o"
    data = _read(path)
    if data is None:
        data = compile_object(text, machine)
        _write(path, data)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=3, jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    addresses = {name: int(engine.get_function_address(name)) for name in names}
    missing = [name for name, address in addresses.items() if not address]
    if missing:
        raise RuntimeError(f"the compiled kernels lack {missing[0]}")
    return Code(addresses, engine)


def _read(path: Path) -> bytes | None:
    """An object that belongs to this user and is what was written."""
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            if hasattr(os, "getuid") and (
                facts.st_uid != os.getuid() or facts.st_mode & 0o022
            ):
                return None
            data = file.read()
    except OSError:
        return None
    digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return body if hashlib.sha256(body).digest() == digest else None


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(hashlib.sha256(data).digest() + data)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
