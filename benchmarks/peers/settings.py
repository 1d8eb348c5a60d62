"""What Edgewise trains on each set, fixed before its test rows were looked at.

`how` says where a setting comes from: three-fold cross-validation on the training rows (benchmarks.papers keeps what
was tried, `python -m benchmarks.peers --choose` does the same for other sets), or that none was run.
"""

from dataclasses import dataclass
from typing import Any

PAPERS = "3 folds of the training rows, least error (benchmarks/papers/results/kegl_trees.json)"
QUICKEST = "3 folds of the training rows, least time to the error of LightGBM's 300 rounds (--choose-quickest)"
TENTH = "one of 3 folds of the training rows held out, features a round 0.1 of 0.05 and 0.1, rows 1 of 0.5 and 1"
DEFAULT = "not chosen: default votes, leaves and rounds by the table's size"
GRID = {  # leaves that --choose tries, and the most rounds
    "letter": ((20, 40, 80), 600),
    "pendigits": ((10, 20, 40), 600),
    "optdigits": ((8, 16, 32), 600),
    "satimage": ((10, 20, 40), 600),
    "usps": ((10, 20, 40), 600),
    "mnist": ((20, 40), 600),
    "shuttle": ((5, 10, 20), 200),
    "connect4": ((20, 40, 80), 600),
}
QUICK_LEAVES = {  # leaves that --choose-quickest tries, with either kind of votes
    "letter": (20, 32, 48, 64, 96),
    "pendigits": (6, 10, 16, 24),
    "optdigits": (5, 8, 12, 20),
    "satimage": (10, 20, 40, 60),
    "usps": (6, 10, 16, 24),
    "mnist": (20, 40),
    "shuttle": (4, 8, 16),
    "connect4": (20, 40, 80),
}
WHOLE = ((1.0, 1.0, 1.0),)
SAMPLES = {  # fractions of rows and features, and shrinkage, that --choose-quickest tries
    "satimage": (*WHOLE, (0.7, 1.0, 1.0), (0.7, 0.5, 0.5), (1.0, 0.3, 1.0), (1.0, 0.2, 0.5), (1.0, 0.3, 0.5)),
}


@dataclass(frozen=True)
class Setting:
    """AdaBoost.MH with Hamming trees of so many leaves, for so many rounds, each of a part of rows and features."""

    max_leaves: int
    rounds: int
    votes: str
    how: str
    row_fraction: float = 1.0
    feature_fraction: float = 1.0
    shrinkage: float = 1.0

    def request(self) -> dict[str, Any]:
        """The training request's algorithm and rounds."""
        weak_learner = {"kind": "hamming_tree", "max_leaves": self.max_leaves, "votes": self.votes}
        algorithm = {
            "name": "adaboost_mh",
            "weak_learner": weak_learner,
            "row_fraction": self.row_fraction,
            "feature_fraction": self.feature_fraction,
            "shrinkage": self.shrinkage,
        }
        return {"algorithm": algorithm, "rounds": self.rounds}

    def __str__(self) -> str:
        parts = {"rows": self.row_fraction, "features": self.feature_fraction}
        sample = "".join(f", {part:g} of the {what} a round" for what, part in parts.items() if part < 1.0)
        steps = "" if self.shrinkage == 1.0 else f", steps of {self.shrinkage:g}"
        return f"{self.max_leaves} leaves, {self.votes} votes, {self.rounds} rounds{sample}{steps}"


SETTINGS = {
    "letter": Setting(64, 2000, "free", f"{QUICKEST}: 0.65 s to 4.17 %"),
    "pendigits": Setting(16, 1000, "free", f"{QUICKEST}: 0.08 s to 0.89 %"),
    "optdigits": Setting(20, 1000, "free", f"{QUICKEST}: 0.06 s to 2.12 %"),
    "satimage": Setting(60, 500, "free", f"{QUICKEST}: 0.17 s to 7.87 %", feature_fraction=0.3, shrinkage=0.5),
    "usps": Setting(10, 1850, "factorised", f"{PAPERS}: 2.10 %"),
    "mnist": Setting(40, 1500, "free", f"{TENTH}: 1.94 % after 600 rounds", feature_fraction=0.1),
    "shuttle": Setting(8, 100, "free", f"{QUICKEST}: 0.004 s to 29 %, which says little: the rival fails there"),
    "connect4": Setting(40, 1000, "free", DEFAULT),
    "kddcup99": Setting(20, 100, "free", DEFAULT),
}
