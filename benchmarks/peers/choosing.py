"""Cross-validation on a set's training rows for settings.py, by the same means as the papers' trials."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.choosing import choose as choose_trial
from benchmarks.papers.choosing import folded
from benchmarks.papers.training import run
from benchmarks.papers.trials import Grid, Trial
from benchmarks.peers.methods import PEERS
from benchmarks.peers.settings import GRID, QUICK_LEAVES, SAMPLES, WHOLE, Setting
from benchmarks.peers.tables import load_pair, paths_of

FOLDS = 3
VOTES = ("free", "factorised")
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
    """What every setting of a set takes to come to the rival's error, both means over the folds, in seconds of rounds.

    None: it does not come there. Of the training rows alone.
    """
    _, most_rounds = GRID[name]
    tried: dict[str, float | None] = {}
    with folded(paths_of(data, name)[0], FOLDS) as pairs:
        targets = [_rival_error(pair, threads) for pair in pairs]
        for votes, sample, leaves in product(VOTES, SAMPLES.get(name, WHOLE), QUICK_LEAVES[name]):
            setting = Setting(leaves, most_rounds, votes, "", *sample)
            curves = [_curve(setting, pair, threads) for pair in pairs]
            tried[str(setting)] = _seconds_to(sum(targets) / FOLDS, curves)
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


def _curve(setting: Setting, pair: tuple[Path, Path], threads: int) -> NDArray[np.float64]:
    """Error of the held out rows and seconds so far, [2, rounds]."""
    rounds = run(setting.request(), *pair, threads).rounds
    return np.array([[each.record.valid_error for each in rounds], np.cumsum([each.seconds for each in rounds])])


def _seconds_to(error: float, curves: list[NDArray[np.float64]]) -> float | None:
    """Mean seconds until the mean error is at most this; None if it never is."""
    shortest = min(curve.shape[1] for curve in curves)
    errors, seconds = np.mean([curve[:, :shortest] for curve in curves], axis=0)
    there = np.flatnonzero(errors <= error)
    return round(float(seconds[there[0]]), 3) if len(there) else None
