"""Trains on one file and follows the error on another. What is followed chooses nothing."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.catalogue import resolve_config
from workers.data_plan import DataRequest, plan_data
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob, TrainingOutcome


def run(request: dict[str, Any], train: Path, followed: Path, threads: int) -> TrainingOutcome:
    """Train in this process; `followed`'s rows are only predicted."""
    plan = plan_data(DataRequest((str(train),), (str(followed),), "label"))
    return train_in_process(TrainingJob("papers", 1, plan, resolve_config(request), threads), NoProgress())


def errors_of_rounds(request: dict[str, Any], train: Path, followed: Path, threads: int) -> NDArray[np.float64]:
    """The followed rows' error after each round, as fractions."""
    outcome = run(request, train, followed, threads)
    return np.array([each.record.valid_error for each in outcome.rounds], np.float64)
