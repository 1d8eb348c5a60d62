"""Lets tests call steps: only kernels have wrappers for Python (boost_core/jit.py)."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba

from boost_core.jit import JIT_DISABLED


@cache
def called(step: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that calls a step and returns what it returns."""
    if JIT_DISABLED:
        return step

    @numba.njit
    def call(*arguments):  # type: ignore[no-untyped-def]
        return step(*arguments)

    return call  # type: ignore[no-any-return]
