"""A second kind of device, simulated: tensors that refuse to meet those of the CPU.

A GPU refuses operations whose tensors lie on two devices. So does this device, although
its tensors lie in main memory: whatever computes here the same as on the CPU makes no
tensor without saying where. Stricter than a GPU in one thing: an index has to be on
the device too. Modes belong to a thread; `enabled` acts in the one that calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "privateuseone"
"""The name that torch reserves for devices it does not know."""

DEVICE = torch.device(NAME, 0)


class OtherTensor(torch.Tensor):
    """A tensor on the simulated device."""

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Compute as on the CPU; refuse tensors of two devices."""
        named = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if func == torch.Tensor.device.__get__:
            return DEVICE
        if name == "numpy":
            raise TypeError("a tensor of another device has no NumPy array")
        goal = _goal(name, args, named)
        if goal != "copy":
            _refuse_mixed(name, (args, named))
        plain_args, plain_named = tree_map(_plain, (args, named))
        result = func(*plain_args, **plain_named)
        if goal == "cpu":
            return result
        is_in_place = name.endswith("_") and not name.endswith("__")
        if is_in_place and isinstance(args[0], OtherTensor):
            return args[0]
        return tree_map(_other, result)


class _Factories(TorchFunctionMode):
    """Makes tensors on the simulated device where that is asked for."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        has_other = any(isinstance(x, OtherTensor) for x in tree_leaves((args, named)))
        if has_other:
            return func(*args, **named)
        wanted = [x for x in (*args, *named.values()) if _is_here(x)]
        if not wanted or func is torch.device:
            return func(*args, **named)
        args, named = tree_map(_to_cpu, (args, named))
        return tree_map(_other, func(*args, **named))


def enabled() -> TorchFunctionMode:
    """Make the device known while the result is entered with `with`."""
    return _Factories()


def _goal(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Where a result goes: `cpu`, `copy` for what may cross devices, or `here`."""
    if name == "cpu":
        return "cpu"
    if name == "copy_":
        return "copy"
    if name == "to":
        goals = [*args[1:], named.get("device")]
        if any(_is_cpu(goal) for goal in goals):
            return "cpu"
    if name == "__setitem__":
        return "copy"
    return "here"


def _is_cpu(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not isinstance(value, OtherTensor)
    return str(value) == "cpu"


def _is_here(value: Any) -> bool:
    return isinstance(value, str | torch.device) and str(value).startswith(NAME)


def _to_cpu(value: Any) -> Any:
    return "cpu" if _is_here(value) else value


def _refuse_mixed(name: str, values: Any) -> None:
    tensors = [x for x in tree_leaves(values) if isinstance(x, torch.Tensor)]
    if any(not isinstance(x, OtherTensor) and x.dim() for x in tensors):
        raise RuntimeError(f"{name}: tensors on {NAME} and on the CPU")


def _plain(value: Any) -> Any:
    if isinstance(value, OtherTensor):
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - the documented way
            return value.as_subclass(torch.Tensor)
    return _to_cpu(value)


def _other(value: Any) -> Any:
    is_new = isinstance(value, torch.Tensor) and not isinstance(value, OtherTensor)
    return value.as_subclass(OtherTensor) if is_new else value
