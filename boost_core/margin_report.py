"""How sure a finished model is of its training rows: their margins, over all members (margins.py says what they prove).

A row's margin is the true label's lead over the best wrong one, in units of the most that the rounds can have given it,
so it lies in [-1, 1] and is above 0 where the row is right. With a column for two classes the lead is Y F. Members add
counts of rows, so the report is the same on any number of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core.collective import Collective
from boost_core.fitted import ALL_COLUMNS, Fitted, Speech
from boost_core.scores import Scores
from boost_core.shard import Shard

Integers = NDArray[np.int64]
GRID = np.round(np.linspace(-1.0, 1.0, 41), 2)
MEAN_UNIT = 2.0**-30  # margins are rounded to this before they are added up
BLOCK_ROWS = 1 << 18  # at once: of all rows, leads and what is made of them were the peak of a training's memory


@dataclass(frozen=True)
class MarginReport:
    """least, mean: of all rows; shares: of rows with at most the margin at the same place of grid. least_edge: of all
    rounds; where weak learners had the largest edges there are, no vote's least margin is above it."""

    least: float
    mean: float
    grid: tuple[float, ...]
    shares: tuple[float, ...]
    least_edge: float


def margin_report(
    scores: Scores, rows: Shard, reach: int, edges: Sequence[float], collective: Collective
) -> MarginReport | None:
    """Of the scores of this member's rows; reach: of `reach_of`. None where leads have no such unit."""
    if reach <= 0:
        return None
    counts, total, least = np.zeros(GRID.shape[0] + 1, np.int64), 0, 2.0
    for block, leads in scores.leads(rows.labels, BLOCK_ROWS):
        margins = leads / float(reach)
        often = np.ones(margins.shape[0], np.int64) if rows.copies is None else rows.copies[block]
        np.add.at(counts, np.searchsorted(GRID, margins, side="left"), often)
        total += int((np.rint(margins / MEAN_UNIT).astype(np.int64) * often).sum())
        least = min(least, float(margins.min()))
    summed = collective.sum(np.append(counts, total))
    n_rows = int(summed[:-1].sum())
    return MarginReport(
        least=-float(collective.max(np.array([-least]))[0]),
        mean=int(summed[-1]) * MEAN_UNIT / n_rows,
        grid=tuple(GRID.tolist()),
        shares=tuple((np.cumsum(summed[:-2]) / n_rows).tolist()),
        least_edge=min(edges),
    )


def reach_of(rounds: Sequence[Fitted], multipliers: Sequence[Integers], n_columns: int) -> int:
    """The most that all rounds can have put between two columns (or on the only one), in score units; 0 where rounds
    have several trees."""
    reach = 0
    for fitted, units in zip(rounds, multipliers, strict=True):
        if len(fitted.parts) != 1 or fitted.parts[0].column != ALL_COLUMNS:
            return 0
        payload = fitted.parts[0].tree.payload.astype(np.int64)
        if fitted.speech is Speech.LABEL:
            most = 1
        elif n_columns == 1:
            most = int(np.abs(payload).max())
        else:
            most = int((payload.max(axis=1) - payload.min(axis=1)).max())
        reach += abs(int(units[0])) * most
    return reach
