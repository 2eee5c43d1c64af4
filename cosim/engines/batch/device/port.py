"""Kernels for another target: the same Python code, compiled again with other functions under its global names."""

from collections.abc import Callable, Sequence
from dis import get_instructions
from types import FunctionType
from typing import Any

Function = Callable[..., Any]


class Port:
    """Functions for a device. stands_for: pairs of a kernel, as numba has it for the host, and what replaces it."""

    def __init__(self, stands_for: Sequence[tuple[Any, Function]], compile_one: Callable[[Function], Any]) -> None:
        self._stands_for = {id(kernel): own for kernel, own in stands_for}
        self._compile = compile_one
        self._found: dict[int, Any] = {}

    def of(self, kernel: Any) -> Any:
        """Return the device's version of a kernel, and compile all that it calls as well."""
        if id(kernel) not in self._found:
            python = self._stands_for.get(id(kernel)) or getattr(kernel, "py_func", kernel)
            known = dict(python.__globals__)
            names = {one.argval for one in get_instructions(python.__code__) if one.opname == "LOAD_GLOBAL"}
            called = {name: known[name] for name in names if name in known}
            known |= {name: self.of(one) for name, one in called.items() if self._is_kernel(one, python)}
            ported = FunctionType(python.__code__, known, python.__name__, python.__defaults__, python.__closure__)
            self._found[id(kernel)] = self._compile(ported)
        return self._found[id(kernel)]

    def _is_kernel(self, one: Any, caller: Function) -> bool:
        """Tell whether a global of `caller` must be compiled for the device as well.

        That is so for a kernel of the host, for what replaces one, and for a function of the caller's own module.
        """
        beside = isinstance(one, FunctionType) and one.__module__ == caller.__module__
        return id(one) in self._stands_for or hasattr(one, "py_func") or beside
