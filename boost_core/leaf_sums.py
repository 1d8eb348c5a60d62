"""Sums of gains over the rows of leaves: the part of growth in one process that knows how many channels a row has.

Growth calls it by an address (native_calls.py). As a part of growth it was compiled, along with all the rest,
for each objective and number of channels, which takes several times as long.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.bundles import Bundles, add_columns
from boost_core.gain_matrix import absolute_sum
from boost_core.intrinsics import Lanes
from boost_core.jit import step
from boost_core.lone_growth import ABSOLUTE, SMALL, SMALL_SLOT
from boost_core.native_calls import Call, Room, task_at

Integers = NDArray[np.int64]


class LeafSums(NamedTuple):
    """What leaves' sums are made of.

    bins uint8 [d, n]; gains: of GainMatrix.flat; order, hists, control, segments: of lone_growth.grow's work and tree;
    joint: see bundles.add_columns; edges int64 [n_blocks + 1, 3]: where a block's features, single features and bundles
    begin; features int64 [k]: those with cuts; singles: of these, those in no bundle.
    """

    bins: NDArray[np.uint8]
    gains: tuple[NDArray[np.signedinteger], int]
    order: NDArray[np.int32]
    segments: Integers
    hists: Integers
    joint: Integers
    control: Integers
    edges: Integers
    bin_start: Integers
    features: Integers
    singles: Integers
    bundles: Bundles
    n_channels: int
    lanes: Lanes


@step
def _sum_up(context, number, kind):  # type: ignore[no-untyped-def]
    """2 * block + place: the block's part of the histograms of leaf SMALL (place 0) or LARGE (1) of control.
    ~leaf: control[ABSOLUTE] = the sum of the absolute gains of that leaf's rows."""
    task = task_at(context, kind)
    control, segments, order = task.control, task.segments, task.order
    if number < 0:
        rows = order[segments[~number, 0] : segments[~number, 1]]
        control[ABSOLUTE] = absolute_sum(task.gains, task.n_channels, rows)
    else:
        block, place = number >> 1, number & 1
        leaf, hist = control[SMALL + place], task.hists[control[SMALL_SLOT + place]]
        edges, rows = task.edges, order[segments[leaf, 0] : segments[leaf, 1]]
        features = task.features[edges[block, 0] : edges[block + 1, 0]]
        singles = task.singles[edges[block, 1] : edges[block + 1, 1]]
        parts = (features, singles, (edges[block, 2], edges[block + 1, 2]), task.joint)
        totals = hist.reshape(-1)
        add_columns(task.bins, rows, task.gains, task.bin_start, parts, task.bundles, task.lanes, totals)


def summing(task: LeafSums) -> tuple[Call, Room]:
    """The call that lone_growth.grow makes, and the room that it needs, to be held as the task's arrays are."""
    room = Room(_sum_up)
    return room.call(task), room
