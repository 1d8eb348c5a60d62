"""The objective of +-1 vote vectors (W3 of Kegl 2013), shared by stump and hamming_tree.

With S the sums of the gains per label over a node's rows, a cut splits S into L (left) and R (right):

    factorised   leaves vote -v and +v with v = sgn(R - L):   value = sum_l |R_l - L_l|
    free         leaves vote sgn(L) and sgn(R):               value = sum_l |L_l| + |R_l|
                                                                    = sum_l max(|S_l|, |R_l - L_l|)

The tree without cuts votes sgn(S) in both.
"""

from typing import NamedTuple

import numpy as np

from boost_core.objective import implements, needs_no_count, set_floors, set_leaves, set_root


@needs_no_count(lambda votes: votes.free)  # else the cut above says how a leaf votes, and a cut of it does not mind
class Votes(NamedTuple):
    """Vote vectors: each leaf for itself (free), or opposite ways on the two sides of a cut."""

    free: bool


@implements(set_floors, Votes)
def _set_floors(objective, sums, n_channels, floors):  # type: ignore[no-untyped-def]
    for c in range(n_channels):
        floors[c] = abs(sums[c]) if objective.free else 0


@implements(set_root, Votes)
def _set_root(objective, sums, n_channels, payload):  # type: ignore[no-untyped-def]
    value = np.int64(0)
    for c in range(n_channels):
        payload[c] = 1 if sums[c] >= 0 else -1
        value += abs(sums[c])
    return value


@implements(set_leaves, Votes)
def _set_leaves(objective, left, right, n_channels, left_payload, right_payload):  # type: ignore[no-untyped-def]
    left_value, right_value = np.int64(0), np.int64(0)
    for c in range(n_channels):
        if objective.free:
            left_payload[c] = 1 if left[c] >= 0 else -1
            right_payload[c] = 1 if right[c] >= 0 else -1
        else:
            right_payload[c] = 1 if right[c] >= left[c] else -1
            left_payload[c] = -right_payload[c]
        left_value += left_payload[c] * left[c]
        right_value += right_payload[c] * right[c]
    return left_value, right_value
