"""The figures that every training answers with, over HTTP and on the command line."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from boost_core.conditions import NAMES
from boost_core.records import RoundRecord
from service.profile import profile_of
from service.safe_json import decode, encode
from workers.data_plan import DataPlan
from workers.job import TrainingOutcome
from workers.memory_need import estimate, facts_of

LAST_FIGURES = ("train_error", "valid_error", "strict_train_error", "loss", "bound")


def training_answer(
    outcome: TrainingOutcome, plan: DataPlan, sha256: str, queued_seconds: float = 0.0
) -> dict[str, Any]:
    """A JSON-ready summary of a finished training. Errors are fractions; what no round produced is null."""
    records = [progress.record for progress in outcome.rounds]
    n_rounds = outcome.model.forest.n_rounds
    answer = {
        "model_sha256": sha256,
        "workers": outcome.workers,
        "stop_reason": outcome.stop_reason.value,
        "warnings": _warnings(records),
        "rounds": n_rounds,
        "rounds_run": len(records),
        # The model ends with its last round, with early stopping at its best one.
        "best_round": n_rounds,
        **_last_figures([record for record in records if record.round <= n_rounds]),
        # The loop checks every round against its bound and raises BoundBroken: no outcome has a broken one.
        "bound_holds": True,
        "margins": None if outcome.margins is None else asdict(outcome.margins),
        "conditions_least": _least_conditions([record for record in records if record.round <= n_rounds]),
        "seconds": dict(outcome.seconds),
        "profile": profile_of(outcome, queued_seconds),
        "peak_memory_bytes": outcome.peak_memory_bytes,
        "estimated_memory_bytes": estimate(facts_of(plan, outcome.model.config)).on(max(outcome.workers, 1)),
        "rows_per_member": list(outcome.rows_per_member),
        "classes": len(plan.classes),
        "rows": outcome.model.n_rows,
        "rows_left_out": plan.train.n_rows - outcome.model.n_rows,
    }
    # Through JSON and back: a figure that left the range of a float becomes null here, not at the reader.
    cleaned: dict[str, Any] = decode(encode(answer))
    return cleaned


def _warnings(records: Sequence[RoundRecord]) -> list[str]:
    """What a user should know about a model that is none of boosting: only its constant has a step of 0."""
    if records and records[0].alpha == 0.0:
        return ["no weak learner was better than chance in round 1: the model answers the most frequent class"]
    return []


def _least_conditions(records: Sequence[RoundRecord]) -> dict[str, float | None] | None:
    """With which gamma each weak-learning condition was met in all of these rounds; None if nobody asked."""
    measured = [record.conditions for record in records if record.conditions is not None]
    if not measured:
        return None
    found = {name: [getattr(each, name) for each in measured] for name in NAMES}
    return {name: None if None in values else min(values) for name, values in found.items()}


def _last_figures(records: Sequence[RoundRecord]) -> dict[str, float | None]:
    names = {"edge_last": "edge"} | {name: name for name in LAST_FIGURES}
    last = records[-1] if records else None
    return {shown: None if last is None else getattr(last, name) for shown, name in names.items()}
