"""How long a gang waits for its workers, on a clock that only its pauses move."""

from typing import Any

import pytest

from workers import gang_leases
from workers.errors import GangUnavailable
from workers.gang_leases import SETTLING_PAUSE, Held, Wanted, wait_for_workers

pytestmark = pytest.mark.alone

BEGAN = 100.0
HELD = Held((), ())


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now, self.pauses = BEGAN, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(gang_leases, "time", clock)
    return clock


def wanted(settles_at: float | None) -> Wanted:
    return Wanted("job", 1, 3, wait_seconds=10.0, lapse_seconds=1.0, given_up=lambda: False, settles_at=settles_at)


def found_when(monkeypatch: pytest.MonkeyPatch, enough: Any) -> None:
    """Workers are had as soon as this says so of whether fewer would do."""
    monkeypatch.setattr(gang_leases, "try_once", lambda _c, _w, settled: HELD if enough(settled) else "too few")


def test_fewer_will_do_as_soon_as_the_gang_has_settled(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    found_when(monkeypatch, lambda settled: settled)
    assert wait_for_workers(None, wanted(BEGAN + 3.3)) is HELD  # type: ignore[arg-type]
    assert clock.now == pytest.approx(BEGAN + 3.3)
    assert max(clock.pauses) <= SETTLING_PAUSE


def test_a_gang_that_settled_before_it_asks_does_not_wait(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    found_when(monkeypatch, lambda settled: settled)
    assert wait_for_workers(None, wanted(BEGAN - 1.0)) is HELD  # type: ignore[arg-type]
    assert clock.pauses == []


@pytest.mark.parametrize("settles_at", [None, BEGAN + 4.0])
def test_a_wait_ends_with_its_time(clock: Clock, monkeypatch: pytest.MonkeyPatch, settles_at: float | None) -> None:
    found_when(monkeypatch, lambda _: False)
    with pytest.raises(GangUnavailable, match="too few; waited 10 s"):
        wait_for_workers(None, wanted(settles_at))  # type: ignore[arg-type]
    assert clock.now == pytest.approx(BEGAN + 10.0)


def test_a_first_gang_is_never_content_with_fewer(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    found_when(monkeypatch, lambda settled: settled or clock.now >= BEGAN + 5.0)
    wait_for_workers(None, wanted(None))  # type: ignore[arg-type]
    assert clock.now >= BEGAN + 5.0
