"""exp, log and rounding against the library, whose results are within one unit in the last place."""

import math

import numpy as np
import pytest

from boost_core import ieee_math
from tests.calling import called

ULPS = 2


def distance_in_ulps(got: float, wanted: float) -> float:
    return abs(got - wanted) / math.ulp(wanted)


def exponents() -> list[float]:
    random = np.random.default_rng(1)
    spread = random.uniform(-700, 700, 800)
    near_zero = random.normal(size=400)
    on_grid = -random.integers(0, 40 << 20, 400) * 2.0**-20  # what gains are made of
    halves = np.arange(-40, 40) * (0.5 * math.log(2))  # where the reduction changes its multiple of ln 2
    return [-700.0, -0.0, 0.0, 700.0, *spread, *near_zero, *on_grid, *halves]


def test_exp_is_within_two_units_in_the_last_place():
    worst = max(distance_in_ulps(float(ieee_math.exp(float(x))), math.exp(x)) for x in exponents())
    assert worst <= ULPS


def test_log1p_and_atan_are_within_five_units_in_the_last_place():
    random = np.random.default_rng(4)
    for x in [*random.normal(size=400), *10 ** random.uniform(-12, 12, 400), 0.0, 1.0, -1.0, 1e300]:
        assert abs(float(ieee_math.atan(float(x))) - math.atan(x)) <= 5 * math.ulp(math.atan(x))
        size = abs(float(x))
        assert abs(float(called(ieee_math.log1p)(size)) - math.log1p(size)) <= 5 * math.ulp(math.log1p(size))


def test_exp_of_score_units_is_finer_than_gains():
    """What a gain is rounded from, relative to the greatest weight: its grid is 2**-30."""
    random = np.random.default_rng(5)
    for units in [0, 1, 1 << 19, *random.integers(0, 1 << 20, 400), *random.integers(0, 60 << 20, 400)]:
        got, wanted = float(called(ieee_math.exp_units)(-float(units))), math.exp(-float(units) * 2.0**-20)
        assert abs(got - wanted) <= wanted * 2.0**-38, units
    assert float(called(ieee_math.exp_units)(0.0)) == 1.0
    assert 0.0 < float(called(ieee_math.exp_units)(-(2.0**40))) < 2.0**-1000


def test_exp_of_zero_is_one():
    assert float(ieee_math.exp(0.0)) == 1.0
    assert float(ieee_math.exp(-0.0)) == 1.0


@pytest.mark.parametrize("x", [-700.5, -1e6, -(2.0**43), -math.inf])
def test_exp_stays_at_its_floor(x: float):
    assert float(ieee_math.exp(x)) == float(ieee_math.exp(-700.0))


def test_log_is_within_two_units_in_the_last_place():
    random = np.random.default_rng(2)
    integers = random.integers(1, 2**62, 400).astype(np.float64)
    spread = 2.0 ** random.uniform(-1000, 1000, 400)
    near_one = 1.0 + random.normal(size=400) * 2.0 ** random.uniform(-52, -2, 400)
    edges = [math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0), math.sqrt(2), math.sqrt(0.5), 2.0**-1022, 2.0**1023]
    for x in [*integers, *spread, *near_one, *edges]:
        wanted = math.log(x)
        assert distance_in_ulps(float(ieee_math.log(float(x))), wanted) <= ULPS or wanted == 0.0, x
    assert float(ieee_math.log(1.0)) == 0.0


def test_rounding_is_half_to_even():
    random = np.random.default_rng(3)
    halves = random.integers(-(2**40), 2**40, 300) + 0.5
    others = random.uniform(-(2.0**31), 2.0**31, 300)
    for value in [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, -0.0, *halves, *others]:
        assert int(called(ieee_math.round_half_even)(float(value))) == round(float(value))
