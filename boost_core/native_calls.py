"""Calls between threads that Python knows nothing of: compiled code hands another thread a function and its arguments.

`call_of` makes what is handed over, two numbers; `call_address` calls it, in whatever thread, without the interpreter's
lock. Who hands it over calls it so as well: a second way to the same function would be compiled a second time. Each has
its twin for when the JIT is off.

`kept_call` is for code that Python asks for and that kernels call which know neither it nor the types of what it is
given. `address_of` and `call_at` are for kernels that call others: what is called so is neither compiled nor optimised
again.
"""

from typing import Any

from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.extending import intrinsic

from boost_core.jit import JIT_DISABLED

_WORD, _POINTER = ir.IntType(64), ir.IntType(8).as_pointer()
_ENTRY = ir.FunctionType(ir.VoidType(), [_POINTER, _WORD])
_PAIR: Any = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]
LEADER = -1  # in place of a helper's number, where who hands a call over makes it, too
KEPT = 512  # int64 of room for what a kept call is given


def _without_counts(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """A value with its arrays, also those in tuples, as if nobody owned them."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = ir.Constant(array.meminfo.type, None)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = [builder.extract_value(value, place) for place in range(len(kind))]
        kinds: Any = kind  # whose types does not know its own
        stripped = [_without_counts(context, builder, *part) for part in zip(kinds.types, parts, strict=True)]
        return context.make_tuple(builder, kind, stripped)
    return value


def _borrowed_compiled(typingctx: Any, value: Any) -> Any:
    """The same arrays, in tuples or not, for as long as the caller has them: views of them count no references.

    Threads that count references to one array take its count from each other at every view: searches of histograms took
    twice as long.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _without_counts(context, builder, sig.args[0], args[0])

    return value(value), codegen


def _entry(context: Any, module: Any, body: Any, kinds: Any, room: Any) -> Any:
    """A function of a pointer to a tuple of arguments, and of a number, that calls a compiled function with them.

    What that function raises is lost: it must not raise.
    """
    given = (*kinds.types, types.int64)
    compiled = body.dispatcher.overloads[given]
    context.active_code_library.add_linking_library(compiled.library)
    target = context.declare_function(module, compiled.fndesc)
    entry = ir.Function(module, _ENTRY, name=module.get_unique_name("entry"))
    entry.linkage = "internal"
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    packed = builder.load(builder.bitcast(entry.args[0], room.type))
    unpack: Any = cgutils.unpack_tuple  # without types in Numba
    arguments = unpack(builder, packed, len(kinds.types))
    returned = compiled.signature.return_type
    context.call_conv.call_function(builder, target, returned, given, [*arguments, entry.args[1]])
    builder.ret_void()
    return entry


def _call_of_compiled(typingctx: Any, body: Any, arguments: Any) -> Any:
    """(address, context) of a call of a compiled function with a tuple of arguments, arrays borrowed, and a number that
    whoever calls it gives; it returns nothing and must not raise. The context lies on the caller's stack: nobody may
    use it once the caller returns."""
    typingctx.resolve_function_type(body, (*arguments.types, types.int64), {})  # compiles it

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lent = _without_counts(context, builder, sig.args[1], args[1])
        room = cgutils.alloca_once_value(builder, lent)  # type: ignore[no-untyped-call]
        return _handed_over(context, builder, sig, room)

    return _PAIR(body, arguments), codegen


def _handed_over(context: Any, builder: Any, sig: Any, room: Any) -> Any:
    """The entry of a call of sig.args[0] with what lies in the room, a tuple of sig.args[1], and where that is."""
    entry = _entry(context, builder.module, sig.args[0], sig.args[1], room)
    numbers = [builder.ptrtoint(pointer, _WORD) for pointer in (entry, room)]
    return context.make_tuple(builder, sig.return_type, numbers)


def _kept_call_compiled(typingctx: Any, body: Any, arguments: Any, room: Any) -> Any:
    """As call_of, but that the context lies in room (int64 [KEPT]): the call may be made for as long as somebody holds
    that array and those among the arguments."""
    typingctx.resolve_function_type(body, (*arguments.types, types.int64), {})  # compiles it

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lent = _without_counts(context, builder, sig.args[1], args[1])
        if context.get_abi_sizeof(lent.type) > 8 * KEPT:
            raise TypeError(f"KEPT is {KEPT}: less than the {context.get_abi_sizeof(lent.type)} bytes of {sig.args[1]}")
        start = context.make_array(sig.args[2])(context, builder, args[2]).data
        place = builder.bitcast(start, lent.type.as_pointer())
        builder.store(lent, place)
        return _handed_over(context, builder, sig, place)

    return _PAIR(body, arguments, room), codegen


def _call_address_compiled(typingctx: Any, address: Any, context: Any, number: Any) -> Any:
    """Make a call that another thread has handed over, with a number of one's own."""

    def codegen(target: Any, builder: Any, sig: Any, args: Any) -> Any:
        function = builder.inttoptr(args[0], _ENTRY.as_pointer())
        builder.call(function, [builder.inttoptr(args[1], _POINTER), args[2]])
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


def address_of(kernel: Any, arguments: tuple[Any, ...]) -> Any:
    """Where the machine code of a kernel for such arguments is, for `call_at` with arguments of the very same types.

    None: it was not called with any yet.
    """
    if JIT_DISABLED:
        return kernel
    type_of: Any = typeof  # without types in Numba
    compiled = kernel.overloads.get(tuple(type_of(argument) for argument in arguments))
    return compiled and compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def _call_at_compiled(typingctx: Any, address: Any, arguments: Any) -> Any:
    """Call a kernel by its address with a tuple of arguments. It returns nothing, and what it raises is lost."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kinds = sig.args[1].types
        function_type = context.call_conv.get_function_type(types.none, kinds)
        function = builder.inttoptr(args[0], function_type.as_pointer())
        once: Any = cgutils.alloca_once_value  # without types in Numba
        unpack: Any = cgutils.unpack_tuple  # without types in Numba
        outcomes = [once(builder, ir.Constant(place.pointee, None)) for place in function_type.args[:2]]
        packer = context.get_arg_packer(kinds)
        given = packer.as_arguments(builder, unpack(builder, args[1], len(kinds)))
        builder.call(function, [*outcomes, *given])
        return context.get_dummy_value()

    return types.void(types.int64, arguments), codegen


def _call_at_plain(address: Any, arguments: tuple[Any, ...]) -> None:
    address(*arguments)


def _replace_if_compiled(typingctx: Any, array: Any, at: Any, expected: Any, value: Any) -> Any:
    """Set an entry of an int64 array if it is as expected, atomically; whether it was."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = builder.gep(context.make_array(sig.args[0])(context, builder, args[0]).data, [args[1]])
        outcome = builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(outcome, 1)

    return types.boolean(array, types.int64, types.int64, types.int64), codegen


def _borrowed_plain(value: Any) -> Any:
    return value


def _call_of_plain(body: Any, arguments: Any) -> tuple[Any, Any]:
    return body, arguments


def _kept_call_plain(body: Any, arguments: Any, room: Any) -> tuple[Any, Any]:
    return body, arguments


def _call_address_plain(address: Any, context: Any, number: int) -> None:
    address(*context, number)


def _replace_if_plain(array: Any, at: int, expected: int, value: int) -> bool:
    found = bool(array[at] == expected)
    if found:
        array[at] = value
    return found


borrowed: Any = _borrowed_plain if JIT_DISABLED else intrinsic(_borrowed_compiled)
call_of: Any = _call_of_plain if JIT_DISABLED else intrinsic(_call_of_compiled)
kept_call: Any = _kept_call_plain if JIT_DISABLED else intrinsic(_kept_call_compiled)
call_address: Any = _call_address_plain if JIT_DISABLED else intrinsic(_call_address_compiled)
call_at: Any = _call_at_plain if JIT_DISABLED else intrinsic(_call_at_compiled)
replace_if: Any = _replace_if_plain if JIT_DISABLED else intrinsic(_replace_if_compiled)
