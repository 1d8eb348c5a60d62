"""Cross-validation on a set's training rows for settings.py, by the same means as the papers' trials."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.choosing import choose as choose_trial
from benchmarks.papers.choosing import folded
from benchmarks.papers.training import run
from benchmarks.papers.trials import Grid, Trial
from benchmarks.peers.methods import PEERS
from benchmarks.peers.settings import GRID, QUICK_LEAVES, Setting
from benchmarks.peers.tables import load_pair, paths_of

FOLDS = 3
RIVAL = "lightgbm-300"  # whose error on a fold is to be reached


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


def quickest(data: Path, name: str, threads: int) -> dict[str, Any]:
    """What every setting of a set takes to come to the rival's error, in mean seconds of rounds over the folds.

    None: it did not come there on some fold. Of the training rows alone.
    """
    _, most_rounds = GRID[name]
    tried: dict[str, float | None] = {}
    with folded(paths_of(data, name)[0], FOLDS) as pairs:
        targets = [_rival_error(pair, threads) for pair in pairs]
        for votes in ("free", "factorised"):
            for leaves in QUICK_LEAVES[name]:
                request = Setting(leaves, most_rounds, votes, "").request()
                took = [
                    _seconds_to(target, request, pair, threads) for target, pair in zip(targets, pairs, strict=True)
                ]
                mean = sum(took) / FOLDS
                tried[f"{leaves} {votes}"] = round(mean, 3) if math.isfinite(mean) else None
    there = {setting: seconds for setting, seconds in tried.items() if seconds is not None}
    return {
        "quickest": min(there, key=lambda setting: there[setting], default=None),
        "rival_error": round(100 * sum(targets) / FOLDS, 3),
        "tried": tried,
    }


def _rival_error(pair: tuple[Path, Path], threads: int) -> float:
    train, held, n_classes = load_pair(*pair)
    predicted = PEERS[RIVAL].fit(train, n_classes, threads)(held.features)
    return float(np.mean(predicted != held.classes))


def _seconds_to(error: float, request: dict[str, Any], pair: tuple[Path, Path], threads: int) -> float:
    """Seconds of rounds until the held out rows' error is at most this; infinity if it never is."""
    spent = 0.0
    for each in run(request, *pair, threads).rounds:
        spent += each.seconds
        if each.record.valid_error is not None and each.record.valid_error <= error:
            return spent
    return math.inf
