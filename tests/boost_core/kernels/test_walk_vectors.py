"""What a row's walk is made of, against its definition."""

import numpy as np
import pytest

from boost_core.jit import kernel
from boost_core.vector_code import WIDTH
from boost_core.walk_vectors import BOUND_AT, CHILD_AT, GROUP, LEAF_AT, add_said, walk_group


@kernel
def _walk(records, places, first, codes, code_at, steps):  # type: ignore[no-untyped-def]
    walk_group(records, places, first, codes, code_at, steps)


@kernel
def _add(sums, pitch, says, places, factors, n):  # type: ignore[no-untyped-def]
    add_said(sums, pitch, says, places, factors, n)


def node(column: int, bound: int, child: int) -> int:
    return child << CHILD_AT | bound << BOUND_AT | column


def leaf(own: int, number: int) -> int:
    return (own - 1) << CHILD_AT | number << LEAF_AT


@pytest.mark.parametrize("steps", [2, 3, 9])
def test_each_walk_goes_by_its_own_codes_and_stays_at_its_leaf(steps: int) -> None:
    """The tree at record 1: code 2 of at least 7 goes to leaf 255, else code 65535 of at least 128 to 3, else to 0. At
    0 and 6: trees of one leaf."""
    records = np.array(
        [leaf(0, 9), node(2, 7, 2), node(65535, 128, 4), leaf(3, 255), leaf(4, 0), leaf(5, 3), leaf(6, 1)]
    )
    places = np.array([0] * 3 + [1, 0, 6, 1, 1, 6, 0, 1] + [0] * 3)
    codes = np.zeros(70000, np.uint8)
    for second, last, wanted in ((6, 127, 0), (6, 128, 3), (0, 255, 3), (7, 0, 255), (255, 255, 255)):
        codes[10 + 2], codes[10 + 65535] = second, last
        found = places.copy()
        _walk(records, found, 3, codes, 10, steps)
        ends = {0: 9, 1: wanted, 6: 1}
        assert found.tolist() == [0] * 3 + [ends[root] for root in places[3 : 3 + GROUP].tolist()] + [0] * 3


@pytest.mark.parametrize(("said", "summed"), [(np.int8, np.int32), (np.int8, np.int64), (np.int32, np.int32),
                                              (np.int32, np.int64)])  # fmt: skip
@pytest.mark.parametrize("vectors", [1, 2, 3, 4, 7, 9])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_what_trees_say_is_scaled_and_added(said: type, summed: type, vectors: int, n: int) -> None:
    rng = np.random.default_rng(vectors)
    pitch = vectors * WIDTH
    says = rng.integers(-120, 120, 9 * pitch).astype(said)
    places, factors = rng.integers(0, 8, 6) * pitch, rng.integers(-(2**20), 2**20, 6).astype(summed)
    sums = rng.integers(-(2**20), 2**20, pitch + WIDTH).astype(summed)
    wanted = sums.copy()
    for tree in range(n):
        wanted[:pitch] += says[places[tree] : places[tree] + pitch] * factors[tree]
    _add(sums, pitch, says, places, factors, n)
    assert sums.tolist() == wanted.tolist()
