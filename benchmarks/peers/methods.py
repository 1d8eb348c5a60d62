"""The peers and their settings. Each is trained from matrices in memory; what is timed is its own preparation of them
(bins, data sets) and its training, not its import. What is not named here is as the library sets it."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import installed_version
from benchmarks.peers.tables import Rows

Predict = Callable[[NDArray[Any]], NDArray[Any]]  # features [n, d] -> class numbers [n]
Fit = Callable[[Rows, int, int], Predict]  # training rows, number of classes, threads


@dataclass(frozen=True)
class Peer:
    """One setting of a library: the distribution that is installed, the module that is imported, how it trains."""

    name: str
    distribution: str
    module: str
    settings: str
    fit: Fit

    @property
    def version(self) -> str | None:
        """None where it is not installed."""
        return installed_version(self.distribution)

    def load(self) -> None:
        """Import it, before any clock runs."""
        importlib.import_module(self.module)


def lightgbm(rounds: int) -> Peer:
    """31 leaves, learning rate 0.1."""

    def fit(rows: Rows, n_classes: int, threads: int) -> Predict:
        import lightgbm as library

        parameters = {
            "objective": "multiclass",
            "num_class": n_classes,
            "num_leaves": 31,
            "learning_rate": 0.1,
            "num_threads": threads,
            "verbose": -1,
        }
        booster = library.train(parameters, library.Dataset(rows.features, rows.classes), rounds)
        return lambda features: most_likely(booster.predict(features))

    return Peer(f"lightgbm-{rounds}", "lightgbm", "lightgbm", f"{rounds} rounds, 31 leaves, 0.1", fit)


def xgboost(rounds: int, strategy: str) -> Peer:
    """Histograms, depth 6; one tree a class, or one tree with a vector a leaf."""

    def fit(rows: Rows, n_classes: int, threads: int) -> Predict:
        import xgboost as library

        parameters = {
            "objective": "multi:softprob",
            "num_class": n_classes,
            "tree_method": "hist",
            "max_depth": 6,
            "multi_strategy": strategy,
            "nthread": threads,
        }
        matrix = library.QuantileDMatrix(rows.features, rows.classes, nthread=threads)
        booster = library.train(parameters, matrix, rounds)
        return lambda features: most_likely(booster.predict(library.DMatrix(features, nthread=threads)))

    short = "xgboost" if strategy == "one_output_per_tree" else "xgboost-vector"
    return Peer(f"{short}-{rounds}", "xgboost-cpu", "xgboost", f"{rounds} rounds, hist, depth 6, {strategy}", fit)


def hist_gradient_boosting(rounds: int) -> Peer:
    """No early stopping: all rounds on all rows."""

    def fit(rows: Rows, n_classes: int, threads: int) -> Predict:
        from sklearn.ensemble import HistGradientBoostingClassifier

        learner = HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, random_state=0)
        predict: Predict = learner.fit(rows.features, rows.classes).predict
        return predict

    name = f"hist-gradient-boosting-{rounds}"
    return Peer(name, "scikit-learn", "sklearn.ensemble", f"{rounds} rounds, no early stopping", fit)


def catboost(rounds: int) -> Peer:
    """As it comes."""

    def fit(rows: Rows, n_classes: int, threads: int) -> Predict:
        from catboost import CatBoostClassifier

        learner = CatBoostClassifier(
            iterations=rounds, thread_count=threads, random_seed=0, verbose=False, allow_writing_files=False
        )
        learner.fit(rows.features, rows.classes)
        return lambda features: np.asarray(learner.predict(features)).reshape(-1)

    return Peer(f"catboost-{rounds}", "catboost", "catboost", f"{rounds} rounds", fit)


def adaboost(rounds: int) -> Peer:
    """SAMME with trees of depth 3; it has one thread only."""

    def fit(rows: Rows, n_classes: int, threads: int) -> Predict:
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        learner = AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=rounds, random_state=0)
        predict: Predict = learner.fit(rows.features, rows.classes).predict
        return predict

    return Peer(f"adaboost-{rounds}", "scikit-learn", "sklearn.ensemble", f"SAMME, depth 3, {rounds} rounds", fit)


def most_likely(probabilities: NDArray[Any]) -> NDArray[Any]:
    """The class of the largest probability, the first of equal ones."""
    return np.asarray(probabilities.argmax(axis=1))


PEERS = {
    peer.name: peer
    for peer in (
        lightgbm(100),
        lightgbm(300),
        xgboost(100, "one_output_per_tree"),
        xgboost(300, "one_output_per_tree"),
        xgboost(100, "multi_output_tree"),
        xgboost(300, "multi_output_tree"),
        hist_gradient_boosting(100),
        catboost(1000),
        adaboost(200),
    )
}
