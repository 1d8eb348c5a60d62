"""What benchmarks.peers says of a run: the best peer, when its error is reached, and which bars are met."""

import pytest

from benchmarks.peers.verdicts import best_peer, first_at, lowest, verdicts

RUN = {
    "errors": [0.5, 0.031, 0.03, 0.02, 0.025],
    "round_seconds": [0.1] * 5,
    "prepare_seconds": 0.05,
    "compile_seconds": 2.0,
}


def test_best_peer_has_the_lowest_error_and_of_equal_ones_the_least_time() -> None:
    slow, fast, wrong = ({"error": error, "seconds": seconds} for error, seconds in ((0.03, 9), (0.03, 4), (0.04, 1)))
    assert best_peer({"slow": slow, "fast": fast, "wrong": wrong}) == "fast"
    assert best_peer({}) is None


def test_first_round_at_an_error_and_its_time() -> None:
    arrival = first_at(RUN, 0.03)
    assert arrival is not None
    assert (arrival.round, arrival.error) == (3, 0.03)
    assert (arrival.seconds, arrival.total_seconds) == pytest.approx((0.35, 2.35))
    assert first_at(RUN, 0.019) is None
    assert (lowest(RUN).round, lowest(RUN).error) == (4, 0.02)


@pytest.mark.parametrize(
    ("name", "error", "seconds", "met"),
    [
        ("letter", 0.03, 3.6, [True, True]),  # 0.35 s of 3.6
        ("letter", 0.03, 3.4, [False, True]),
        ("letter", 0.01, 99.0, [False, False]),  # never reached
        ("usps", 0.02, 1.4, [True, False]),  # 0.45 s of 1.4; equal is not below
        ("shuttle", 0.028, 0.26, [True]),  # 0.031 is within 0.3 points, after 0.25 s
        ("shuttle", 0.028, 0.24, [False]),
    ],
)
def test_bars(name: str, error: float, seconds: float, met: list[bool]) -> None:
    assert [each.met for each in verdicts(name, {"error": error, "seconds": seconds}, RUN)] == met
