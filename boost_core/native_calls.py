"""Calls that Python and threads know nothing of: compiled code is called by an address and the place of its arguments.

    @step
    def body(context, number, kind):      # a step, compiled for each type of task; returns and raises nothing
        task = task_at(context, kind)
        ...

    address, context = room.call(task)          # Python; compiles the body for such a task
    call_address(address, context, number)      # compiled code, in any thread, without the interpreter's lock
    make_call(address, context, number)         # Python

Who calls knows neither the body nor the types of its task: what is called so is not compiled and optimised once more
along with whatever calls it, and Python hands over numbers where many arrays were taken apart at every call. Each has
its twin for when the JIT is off.
"""

import ctypes
import struct
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from boost_core.aligned import aligned_zeros
from boost_core.jit import JIT_DISABLED, kernel

Call = tuple[int, int]  # (address, context), for as long as the room, and the arrays of the task, live
NO_CALL: Call = (0, 0)
LEADER = -1  # in place of a helper's number, where who hands a call over makes it, too


class _Leaf(NamedTuple):
    """Where a part of a task that is no tuple lies in its room (bytes; of an array, what lies behind its owner, who is
    nobody), its type, and the format by which struct packs it."""

    at: int
    kind: Any
    code: str


def _number_of(kind: Any) -> np.dtype[Any]:
    """Errors: TypeError where a type is none of a number."""
    if not isinstance(kind, types.Boolean | types.Integer | types.Float):
        raise TypeError(f"a task may hold arrays, numbers and tuples of them, not {kind}")
    return np.dtype(str(kind))


def _laid_out(kind: Any, at: int) -> tuple[list[_Leaf], int, int]:
    """The leaves of a value that lies at or behind a place, as LLVM lays out its structs; its end and its alignment."""
    if isinstance(kind, types.Array):
        at = -(-at // 8) * 8
        n_fields = 3 + 2 * kind.ndim  # size, size of an entry, first entry, shape, strides
        return [_Leaf(at + 16, kind, f"{n_fields}q")], at + 16 + 8 * n_fields, 8
    if not isinstance(kind, types.BaseTuple):
        number = _number_of(kind)
        at = -(-at // number.itemsize) * number.itemsize
        return [_Leaf(at, kind, number.char)], at + number.itemsize, number.itemsize
    kinds: Any = kind  # whose types does not know its own
    alignment = max((_laid_out(each, 0)[2] for each in kinds.types), default=1)
    leaves, at = [], -(-at // alignment) * alignment
    for each in kinds.types:
        more, at, _ = _laid_out(each, at)
        leaves += more
    return leaves, -(-at // alignment) * alignment, alignment


def _types(task: tuple[Any, ...]) -> Iterator[Any]:
    """What tells types of tasks apart, in a tenth of the time that Numba takes for them."""
    for each in task:
        if isinstance(each, np.ndarray):
            yield each.dtype
            yield each.ndim
            yield each.flags.num
        else:
            yield type(each)
            if isinstance(each, tuple):
                yield len(each)
                yield from _types(each)


class _Compiled(NamedTuple):
    """A body for a type of task: where it is, and how tasks lie in their room, of so many bytes."""

    address: int
    leaves: list[_Leaf]
    size: int


_compiled: dict[tuple[Any, ...], _Compiled] = {}  # by body and _types


def _compiled_for(body: Any, task: tuple[Any, ...]) -> _Compiled:
    key = body, type(task), *_types(task)
    found = _compiled.get(key)
    if found is None:
        kind = typeof(task)  # type: ignore[no-untyped-call]
        leaves, size, _ = _laid_out(kind, 0)
        target = cpu_target.target_context
        if size != (laid_out := target.get_abi_sizeof(target.get_value_type(kind))):
            raise TypeError(f"a task of {size} bytes takes {laid_out} in compiled code: {kind}")
        signature = (types.int64, types.int64, types.TypeRef(kind))
        if signature not in body.overloads:
            body.compile(signature)
        compiled = body.overloads[signature]
        address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        found = _compiled[key] = _Compiled(address, leaves, size)
    return found


def _leaves(task: Any) -> Iterator[Any]:
    """What a task is made of, in tuples or not."""
    for each in task:
        if isinstance(each, tuple):
            yield from _leaves(each)
        else:
            yield each


class Room:
    """Where tasks of one body lie, one after another, for compiled code to find. It holds none of their arrays: whoever
    asked for the call does, for as long as it may be made."""

    def __init__(self, body: Any) -> None:
        self._body = body
        self._compiled = _Compiled(0, [], 0)
        self._there: list[Any] = []  # weak references to arrays, and numbers, that lie there
        self._words, self._start, self._bytes = np.empty(0, np.int64), 0, memoryview(b"")
        self._task: Any = None  # where nothing is compiled

    def call(self, task: tuple[Any, ...]) -> Call:
        """What calls the body with a task, in place of the one before; compiles it for a type of task that is new.

        Errors: TypeError where a task holds what is neither an array, a number nor a tuple of them.
        """
        if JIT_DISABLED:
            self._task = task
            return id(self._body), id(task)
        given = list(_leaves(task))
        if not self._replace(given):
            self._begin(task, given)
        return self._compiled.address, self._start

    def _replace(self, given: list[Any]) -> bool:
        """Write what is not there; whether that is all of the same types as before."""
        if len(given) != len(self._there):
            return False
        for place, (value, there) in enumerate(zip(given, self._there, strict=True)):
            if (there() if isinstance(there, weakref.ref) else there) is not value:
                if typeof(value) != self._compiled.leaves[place].kind:  # type: ignore[no-untyped-call]
                    return False
                self._write(place, value)
        return True

    def _begin(self, task: tuple[Any, ...], given: list[Any]) -> None:
        """Find or compile the body for a type of task, and write one."""
        self._compiled = _compiled_for(self._body, task)
        self._there = [None] * len(given)
        self._words = aligned_zeros((self._compiled.size // 8 + 1,), np.int64)
        self._start, self._bytes = self._words.ctypes.data, self._words.data.cast("B")
        for place, value in enumerate(given):
            self._write(place, value)

    def _write(self, place: int, value: Any) -> None:
        at, kind, code = self._compiled.leaves[place]
        if isinstance(kind, types.Array):
            first = value.__array_interface__["data"][0]
            struct.pack_into(code, self._bytes, at, value.size, value.itemsize, first, *value.shape, *value.strides)
            self._there[place] = weakref.ref(value)
        else:
            struct.pack_into(code, self._bytes, at, value)
            self._there[place] = value


def _loaded(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """A value that lies somewhere, field by field, so that only what is used is read; of arrays no owner, as they are
    counted by nobody: threads that count references to one array take its count from each other at every view."""
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind  # whose types does not know its own
        fields = [
            _loaded(context, builder, each, cgutils.gep_inbounds(builder, place, 0, index))  # type: ignore[no-untyped-call]
            for index, each in enumerate(kinds.types)
        ]
        return context.make_tuple(builder, kind, fields)
    if not isinstance(kind, types.Array):
        return builder.load(place)
    array = context.make_array(kind)(context, builder)
    for index, field in enumerate(array._datamodel._fields):
        if field in ("meminfo", "parent"):
            continue
        value = builder.load(cgutils.gep_inbounds(builder, place, 0, index))  # type: ignore[no-untyped-call]
        setattr(array, field, value)
    return array._getvalue()


def _task_at_compiled(typingctx: Any, context: Any, kind: Any) -> Any:
    """The task that lies at a context, of the type that kind stands for."""

    def codegen(target: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], target.get_value_type(sig.return_type).as_pointer())
        return _loaded(target, builder, sig.return_type, place)

    return kind.instance_type(context, kind), codegen


def _call_address_compiled(typingctx: Any, address: Any, context: Any, number: Any) -> Any:
    """Call a body with the task at a context, and a number of the caller's own."""
    kinds = (types.int64, types.int64, types.TypeRef(types.int64))  # of any type

    def codegen(target: Any, builder: Any, sig: Any, args: Any) -> Any:
        function_type = target.call_conv.get_function_type(types.none, kinds)
        function = builder.inttoptr(args[0], function_type.as_pointer())
        once: Any = cgutils.alloca_once_value  # without types in Numba
        outcomes = [once(builder, ir.Constant(place.pointee, None)) for place in function_type.args[:2]]
        nothing = ir.Constant(function_type.args[4], None)
        builder.call(function, [*outcomes, args[1], args[2], nothing])
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def _replace_if_compiled(typingctx: Any, array: Any, at: Any, expected: Any, value: Any) -> Any:
    """Set an entry of an int64 array if it is as expected, atomically; whether it was."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = builder.gep(context.make_array(sig.args[0])(context, builder, args[0]).data, [args[1]])
        outcome = builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(outcome, 1)

    return types.boolean(array, types.int64, types.int64, types.int64), codegen


def _object_at(number: int) -> Any:
    """What id() gave a number for, while it lives."""
    return ctypes.cast(number, ctypes.py_object).value


def _task_at_plain(context: int, kind: Any) -> Any:
    return _object_at(context)


def _call_address_plain(address: int, context: int, number: int) -> None:
    _object_at(int(address))(int(context), number, None)


def _replace_if_plain(array: Any, at: int, expected: int, value: int) -> bool:
    found = bool(array[at] == expected)
    if found:
        array[at] = value
    return found


task_at: Any = _task_at_plain if JIT_DISABLED else intrinsic(_task_at_compiled)
call_address: Any = _call_address_plain if JIT_DISABLED else intrinsic(_call_address_compiled)
replace_if: Any = _replace_if_plain if JIT_DISABLED else intrinsic(_replace_if_compiled)


@kernel
def make_call(address, context, number):  # type: ignore[no-untyped-def]
    """call_address, for Python."""
    call_address(address, context, number)
