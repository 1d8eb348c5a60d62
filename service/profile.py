"""Where the time of a training went, by stage: for answers and for people."""

from typing import Any, TypedDict

from rich.console import Console
from rich.table import Table

from boost_core.records import Phase
from workers.job import TrainingOutcome
from workers.stages import PLACES, ROUND_STAGES, STAGES

WAITING = "waiting"
NAMES = {
    WAITING: "waiting for workers",
    "read": "reading",
    "bin": "binning",
    "compile": "compilation",
    "growing": "growing, the rest",
    "histograms": "histograms",
    "search": "search for cuts",
    "partition": "partition of rows",
    "step": "edge and alpha",
    "conditions": "condition figures",
    "update": "scores and errors",
    "weights": "weights, gain matrix",
    "packing": "packing of sums",
    "exchange": "sending and waiting",
    "report": "reporting rounds",
    "checkpoint": "checkpoints",
    "other": "before and after rounds",
    "validate": "validation",
}


class Row(TypedDict):
    """A stage. share: of all seconds; per_round and outside_kernels: of rounds and validation only."""

    stage: str
    seconds: float
    share: float
    per_round: float | None
    outside_kernels: float | None


def profile_of(outcome: TrainingOutcome, queued: float = 0.0) -> dict[str, Any]:
    """JSON-ready: the stages in order, and of rounds how much was spent outside of kernels (Python, calling kernels,
    making arrays). queued: seconds before a runner took the job."""
    stages, n_rounds = outcome.stages, max(len([each for each in outcome.rounds if not each.known]), 1)
    waited = queued + outcome.waited
    total = waited + sum(stages.seconds)
    rows = [_row(WAITING, waited, total, None)]
    for name in STAGES:
        within = name in ROUND_STAGES or name == Phase.VALIDATE
        rows.append(
            _row(name, stages.seconds[PLACES[name]], total, (n_rounds, stages.outside(name)) if within else None)
        )
    outside = stages.outside_kernels
    share = outside / stages.train if stages.train > 0 else None
    rounds = {"seconds": stages.train, "outside_kernels": outside, "outside_kernels_share": share}
    return {"stages": rows, "rounds": rounds}


def _row(name: str, seconds: float, total: float, of_rounds: tuple[int, float] | None) -> Row:
    each, outside = (None, None) if of_rounds is None else (seconds / of_rounds[0], of_rounds[1])
    return Row(
        stage=name,
        seconds=seconds,
        share=seconds / total if total > 0 else 0.0,
        per_round=each,
        outside_kernels=outside,
    )


def show_profile(profile: dict[str, Any], console: Console) -> None:
    """The same as a table; stages that took no time are left out."""
    table = Table(title="where the time went")
    table.add_column("stage")
    for title in ("seconds", "share", "ms a round", "outside kernels s"):
        table.add_column(title, justify="right")
    for row in profile["stages"]:
        if row["seconds"] > 0:
            table.add_row(
                NAMES[row["stage"]],
                f"{row['seconds']:.3f}",
                f"{row['share']:.1%}",
                "" if row["per_round"] is None else f"{1e3 * row['per_round']:.3f}",
                "" if row["outside_kernels"] is None else f"{row['outside_kernels']:.3f}",
            )
    console.print(table)
    rounds = profile["rounds"]
    if rounds["outside_kernels_share"] is not None:
        share = f"{rounds['outside_kernels_share']:.1%}"
        console.print(f"outside kernels (Python, calls, allocation): {share} of the rounds' {rounds['seconds']:.3f} s")
