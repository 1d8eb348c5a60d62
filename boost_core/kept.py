"""What is made of a forest once and used as long as the forest lives; never copied, compared or pickled with it."""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from boost_core.model import Forest

Made = TypeVar("Made")


class Kept(Generic[Made]):
    """Calls `make` for a forest it has not seen. Two threads may both make the same, which does no harm."""

    def __init__(self, make: Callable[[Forest], Made]) -> None:
        self._make = make
        self._found: dict[int, tuple[weakref.ref[Forest], Made]] = {}

    def __call__(self, forest: Forest) -> Made:
        key = id(forest)
        found = self._found.get(key)
        if found is not None and found[0]() is forest:
            return found[1]
        made = self._make(forest)
        self._found[key] = (weakref.ref(forest, lambda _: self._found.pop(key, None)), made)
        return made
