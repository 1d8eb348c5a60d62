"""The rounds of a model so far as arrays, as checkpoints hold them: its trees, and the figures of each round.

With them is kept the room that a checkpoint is made in, of which only what a file fills is ever touched.
"""

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.conditions import NAMES, Conditions, as_figures
from boost_core.joined_trees import Growing, JoinedTrees, small_pages
from boost_core.records import RoundRecord
from boost_core.start import ModelSoFar

SPARE = 3.0  # times what is needed now: memory is the system's until it is written to
NO_OUTPUTS = 2  # numbers a leaf where no tree says how many
# Figures of a round in the order of RoundRecord; NaN stands for None where a figure may be missing.
FIGURES = {name: kind for name, kind in RoundRecord.__annotations__.items() if name != "conditions"}
RECORD = np.dtype([(name, "<i8" if kind is int else "<f8") for name, kind in FIGURES.items()])
MISSING = tuple(name for name, kind in FIGURES.items() if kind not in (int, float))
_figures = attrgetter(*FIGURES)


class RoundsSoFar:
    """Kept from one checkpoint to the next, so that only the rounds since then have to be joined to the others."""

    def __init__(self) -> None:
        self._room = np.empty(0, np.uint8)
        self._begin()

    def _begin(self) -> None:
        self.trees = JoinedTrees(NO_OUTPUTS, SPARE)
        self._records, self._conditions = Growing(RECORD, spare=SPARE), Growing(np.dtype("<f8"), len(NAMES), SPARE)
        self._measured = False
        self._last: RoundRecord | None = None

    def bring_up(self, model: ModelSoFar) -> None:
        """Hold the rounds of this model: the new ones are added, unless it is not the last one gone on."""
        known = self._records.rows.shape[0]
        if known > model.n_rounds or (known > 0 and model.records[known - 1] is not self._last):
            self._begin()
            known = 0
        records, first = model.records[known:], self.trees.n_rounds
        self.trees.append(model.rounds[first:], model.multipliers[first:])
        self._records.append(np.array([_figures(record) for record in records], RECORD))
        conditions = as_figures([record.conditions for record in records])
        self._measured |= conditions is not None
        self._conditions.append(np.full((len(records), len(NAMES)), np.nan) if conditions is None else conditions)
        self._last = model.records[-1] if model.records else None

    def room_for(self, n_bytes: int) -> NDArray[np.uint8]:
        """Room for a file of so many bytes; the same as before while it is enough."""
        if self._room.shape[0] < n_bytes:
            self._room = np.empty(0, np.uint8)  # before the next one is there
            self._room = small_pages((int(SPARE * n_bytes),), np.uint8)
        return self._room

    @property
    def records(self) -> dict[str, bytes]:
        """Figures of all rounds, and their conditions if any round's were measured."""
        return {
            "records": self._records.rows.tobytes(),
            "conditions": self._conditions.rows.tobytes() if self._measured else b"",
        }


def records_of(raw: Mapping[str, bytes]) -> tuple[RoundRecord, ...]:
    """The inverse of `RoundsSoFar.records`."""
    rows = np.frombuffer(raw["records"], RECORD).tolist()
    measured = np.frombuffer(raw["conditions"], "<f8").reshape(-1, len(NAMES))
    if len(measured) not in (0, len(rows)):
        raise ValueError(f"there are {len(rows)} rounds and conditions of {len(measured)}")
    conditions = [Conditions.from_figures(row) for row in measured.tolist()] if len(measured) else [None] * len(rows)
    return tuple(_record(row, each) for row, each in zip(rows, conditions, strict=True))


def _record(row: Sequence[Any], conditions: Conditions | None) -> RoundRecord:
    values = dict(zip(RECORD.names or (), row, strict=True))
    values |= {name: None for name in MISSING if math.isnan(values[name])}
    return RoundRecord(**values, conditions=conditions)
