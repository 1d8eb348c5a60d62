"""The form that the exponential vote loss takes for a weak learner."""

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Problem
from boost_core.algorithms.exponential_odds import ExponentialOdds
from boost_core.algorithms.exponential_votes import ExponentialVotes, InitialWeights
from boost_core.gain_matrix import Reading


def vote_form(targets: NDArray[np.int32], initial: InitialWeights, problem: Problem) -> ExponentialVotes:
    """One step for all labels, or the steps that real-valued leaves are; targets: int32 [n_rows]."""
    kind = problem.weak_learner.name if problem.weak_learner else ""
    if kind == "real_tree":
        return ExponentialOdds(targets, initial, problem)
    reading = Reading.VOTES if kind == "tree" else Reading.TOGETHER
    return ExponentialVotes(targets, initial, problem, reading)


def wants_columns(problem: Problem) -> bool:
    """Whether every label takes a step of its own."""
    learner = problem.weak_learner
    return learner is not None and learner.name == "independent_stumps" and learner.parameters["alpha"] == "per_label"
