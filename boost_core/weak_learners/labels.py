"""The objective of single-label leaves: one with sums S is worth max_l S_l and answers the smallest l attaining it."""

from typing import NamedTuple

from boost_core.jit import inner
from boost_core.objective import cut_value, implements, needs_no_count, set_leaves, set_root


@needs_no_count()
class Labels(NamedTuple):
    """One class a leaf."""

    n_outputs: int


@inner
def best_label(sums, n_channels):  # type: ignore[no-untyped-def]
    """The label of the greatest sum, the smallest among equals."""
    best = 0
    for c in range(1, n_channels):
        if sums[c] > sums[best]:
            best = c
    return best


@implements(cut_value, Labels)
def _cut_value(objective, sums, left, n_channels):  # type: ignore[no-untyped-def]
    left_best, right_best = left[0], sums[0] - left[0]
    for c in range(1, n_channels):
        left_best = max(left_best, left[c])
        right_best = max(right_best, sums[c] - left[c])
    return left_best + right_best


@implements(set_root, Labels)
def _set_root(objective, sums, n_channels, payload):  # type: ignore[no-untyped-def]
    payload[0] = best_label(sums, n_channels)
    return sums[payload[0]]


@implements(set_leaves, Labels)
def _set_leaves(objective, left, right, n_channels, left_payload, right_payload):  # type: ignore[no-untyped-def]
    left_payload[0] = best_label(left, n_channels)
    right_payload[0] = best_label(right, n_channels)
    return left[left_payload[0]], right[right_payload[0]]
