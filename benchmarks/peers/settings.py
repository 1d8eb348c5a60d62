"""What Edgewise trains on each set, fixed before its test rows were looked at.

`how` says where a setting comes from: three-fold cross-validation on the training rows (benchmarks.papers keeps what
was tried, `python -m benchmarks.peers --choose` does the same for other sets), or that none was run.
"""

from dataclasses import dataclass
from typing import Any

PAPERS = "3 folds of the training rows, least error (benchmarks/papers/results/kegl_trees.json)"
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
    "satimage": (6, 10, 20, 40),
    "usps": (6, 10, 16, 24),
    "mnist": (20, 40),
    "shuttle": (4, 8, 16),
    "connect4": (20, 40, 80),
}


@dataclass(frozen=True)
class Setting:
    """AdaBoost.MH with Hamming trees of so many leaves, for so many rounds."""

    max_leaves: int
    rounds: int
    votes: str
    how: str

    def request(self) -> dict[str, Any]:
        """The training request's algorithm and rounds."""
        weak_learner = {"kind": "hamming_tree", "max_leaves": self.max_leaves, "votes": self.votes}
        return {"algorithm": {"name": "adaboost_mh", "weak_learner": weak_learner}, "rounds": self.rounds}

    def __str__(self) -> str:
        return f"{self.max_leaves} leaves, {self.votes} votes, {self.rounds} rounds"


SETTINGS = {
    "letter": Setting(80, 2895, "factorised", f"{PAPERS}: 2.83 %"),
    "pendigits": Setting(20, 861, "factorised", f"{PAPERS}: 0.36 %"),
    "optdigits": Setting(8, 1943, "factorised", f"{PAPERS}: 1.46 %"),
    "satimage": Setting(20, 500, "free", DEFAULT),
    "usps": Setting(20, 1000, "free", DEFAULT),
    "mnist": Setting(30, 1000, "free", DEFAULT),
    "shuttle": Setting(10, 100, "free", DEFAULT),
    "connect4": Setting(40, 1000, "free", DEFAULT),
    "kddcup99": Setting(20, 100, "free", DEFAULT),
}
