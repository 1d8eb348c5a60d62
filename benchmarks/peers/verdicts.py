"""What the runs on a set come to: the best peer, when Edgewise gets there, and which bars are met."""

from dataclasses import dataclass
from typing import Any

TENTH, THIRD = 1 / 10, 1 / 3
TIME_BARS = {  # of the best peer's time, to reach its error; other sets: NEAR_ERROR more in at most its time
    "letter": TENTH,
    "pendigits": TENTH,
    "optdigits": TENTH,
    "usps": THIRD,
    "mnist": THIRD,
    "satimage": THIRD,
}
NEAR_ERROR = 0.003
LOWER_EXPECTED = ("letter", "pendigits", "optdigits", "usps")  # own lowest error below every peer's
EPSILON = 1e-9  # errors are counts of rows divided by the same number


@dataclass(frozen=True)
class Reached:
    """A round (from 1), its error, and the time until it ended: preparation and rounds, and with compilation."""

    round: int
    error: float
    seconds: float
    total_seconds: float


@dataclass(frozen=True)
class Verdict:
    """A bar; met: None where it cannot be said. figure: the share of the peer's time, or the own lowest error."""

    bar: str
    met: bool | None
    figure: float | None


def best_peer(results: dict[str, dict[str, Any]]) -> str | None:
    """The lowest error, of equal ones the fastest."""
    return min(results, key=lambda name: (results[name]["error"], results[name]["seconds"]), default=None)


def first_at(run: dict[str, Any], error: float) -> Reached | None:
    """The first round with at most this error, None if there is none."""
    for place, each in enumerate(run["errors"]):
        if each <= error + EPSILON:
            return reached(run, place)
    return None


def lowest(run: dict[str, Any]) -> Reached:
    """The first round with the lowest error of all."""
    return reached(run, run["errors"].index(min(run["errors"])))


def reached(run: dict[str, Any], place: int) -> Reached:
    """Where a run was at the end of a round (from 0)."""
    seconds = run["prepare_seconds"] + sum(run["round_seconds"][: place + 1])
    return Reached(place + 1, run["errors"][place], seconds, seconds + run["compile_seconds"])


def allowed_error(name: str, best_error: float) -> float:
    """What is to be reached in the bar's time."""
    return best_error if name in TIME_BARS else best_error + NEAR_ERROR


def verdicts(name: str, peer: dict[str, Any], run: dict[str, Any]) -> list[Verdict]:
    """All bars of a set, against its best peer's result."""
    share = TIME_BARS.get(name, 1.0)
    arrival = first_at(run, allowed_error(name, peer["error"]))
    ratio = None if arrival is None else arrival.seconds / peer["seconds"]
    what = "the best peer's error" if name in TIME_BARS else f"{100 * NEAR_ERROR:.1f} points more than the best peer's"
    found = [Verdict(f"{what} in at most {share:.2f} of its time", ratio is not None and ratio <= share, ratio)]
    if name in LOWER_EXPECTED:
        own = lowest(run).error
        found.append(Verdict("lowest error below every peer's", own < peer["error"] - EPSILON, own))
    return found
