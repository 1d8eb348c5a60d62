"""Cross-validation on a set's training rows for settings.py, by the same means as the papers' trials."""

from pathlib import Path
from typing import Any

from benchmarks.papers.choosing import choose as choose_trial
from benchmarks.papers.trials import Grid, Trial
from benchmarks.peers.settings import GRID

FOLDS = 3


def choose(data: Path, name: str, votes: str, threads: int) -> dict[str, Any]:
    """The leaves and rounds of the least mean error over the folds, and what every number of leaves came to.

    Errors: ValueError for a set without a grid.
    """
    if name not in GRID:
        raise ValueError(f"{name!r} has no grid of settings to choose from; there is one for: {', '.join(GRID)}")
    leaves, rounds = GRID[name]
    algorithm = {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "votes": votes}}
    trial = Trial("peers", name, votes, algorithm, 0, None, None, Grid("max_leaves", leaves, rounds))
    return choose_trial(trial, data, FOLDS, threads)
