"""How large a tree may grow: settings that trees of all kinds share."""

from typing import Any, NamedTuple

from boost_core.parameters import Parameter
from boost_core.tree import NO_LIMIT

MOST_LEAVES = 4096
LIMITS = (
    Parameter("max_leaves", "integer", 8, "most leaves of a tree", minimum=2, maximum=MOST_LEAVES),
    Parameter("max_depth", "integer", 0, "most cuts above a leaf; 0: no limit but max_leaves", minimum=0, maximum=64),
    Parameter(
        "max_nodes",
        "integer",
        0,
        "most nodes of a tree, leaves counted (as C4.5 does); 0: no limit but max_leaves",
        minimum=0,
        maximum=2 * MOST_LEAVES - 1,
    ),
)


class Limits(NamedTuple):
    """max_leaves: none of the three settings allows more; max_depth: most cuts above a leaf."""

    max_leaves: int
    max_depth: int


def limits(parameters: Any) -> Limits:
    """The limits that the settings make together. N nodes are (N + 1) / 2 leaves; one node is a tree without cuts."""
    leaves, depth, nodes = (int(parameters[name]) for name in ("max_leaves", "max_depth", "max_nodes"))
    if nodes:
        leaves = min(leaves, (nodes + 1) // 2)
    if depth:
        leaves = min(leaves, 1 << depth)
    return Limits(leaves, depth or NO_LIMIT)
