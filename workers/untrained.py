"""The outcome of a job that was cancelled before any member began: like one that was stopped before round 1."""

import numpy as np

from boost_core.binning import make_binning
from boost_core.decoding import plain_decoding
from boost_core.forest import make_forest
from boost_core.model import Model
from boost_core.records import StopReason
from boost_core.training import TrainingResult
from workers.job import TrainingJob, TrainingOutcome
from workers.stages import PHASES


def untrained(job: TrainingJob) -> TrainingOutcome:
    """No rounds, no rows read, no time spent. The model has no learner, and no thresholds or fingerprint either."""
    plan = job.plan
    n_features = len(plan.features)
    binning = make_binning([np.empty(0)] * n_features, [False] * n_features)
    forest = make_forest([], [], plain_decoding(len(plan.classes), plan.multi_label), binning)
    result = TrainingResult(forest, (), StopReason.CANCELLED)
    model = Model(
        config=job.config,
        features=plan.features,
        label=plan.label,
        classes=plan.classes,
        thresholds=binning.thresholds,
        threshold_start=binning.threshold_start,
        forest=result.forest,
        figures=result.figures(),
        fingerprint=0,
        n_rows=plan.n_train,
    )
    seconds = dict.fromkeys((*PHASES, "total", "per_round"), 0.0)
    return TrainingOutcome(model, result.stop_reason, (), seconds, peak_memory_bytes=0, workers=0, rows_per_member=())
