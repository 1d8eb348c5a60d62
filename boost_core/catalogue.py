"""The algorithms and weak learners that exist, by name, and the resolving of a request's choices."""

from collections.abc import Mapping
from typing import Any

from boost_core.algorithms.adaboost import AdaBoost
from boost_core.algorithms.adaboost_mh import AdaBoostMH
from boost_core.algorithms.adaboost_mm import AdaBoostMM
from boost_core.algorithms.base import Algorithm
from boost_core.binning import MAX_BINS
from boost_core.config import Choice, TrainingConfig
from boost_core.errors import ConfigError
from boost_core.parameters import Location, Parameter, Problem, json_schema, resolve
from boost_core.weak_learners.base import WeakLearner
from boost_core.weak_learners.hamming_tree import HammingTree
from boost_core.weak_learners.stump import Stump
from boost_core.weak_learners.tree import SingleLabelTree

ALGORITHMS: dict[str, type[Algorithm]] = {algorithm.name: algorithm for algorithm in (AdaBoost, AdaBoostMH, AdaBoostMM)}
WEAK_LEARNERS: dict[str, type[WeakLearner]] = {
    learner.kind: learner for learner in (Stump, HammingTree, SingleLabelTree)
}

RUN_PARAMETERS = (
    Parameter("rounds", "integer", 100, "rounds of boosting", minimum=1, maximum=1_000_000),
    Parameter(
        "max_bins",
        "integer",
        MAX_BINS,
        "value bins of a feature",
        minimum=2,
        maximum=MAX_BINS,
    ),
    Parameter(
        "seed",
        "integer",
        0,
        "seed of every random choice",
        minimum=0,
        maximum=2**63 - 1,
    ),
)


def resolve_config(body: Mapping[str, Any]) -> TrainingConfig:
    """Fill in the defaults of a request's algorithm, rounds, max_bins and seed.

    Errors: ConfigError with every problem found, each at its place in the body.
    """
    algorithm, weak_learner, problems = _resolve_algorithm(body.get("algorithm"))
    given = {name: body[name] for name in ("rounds", "max_bins", "seed") if name in body}
    run, run_problems = resolve(RUN_PARAMETERS, given, (), "the run")
    problems += run_problems
    if problems or algorithm is None or weak_learner is None:
        raise ConfigError(problems)
    return TrainingConfig(algorithm, weak_learner, run["rounds"], run["max_bins"], run["seed"])


def _resolve_algorithm(
    given: Any,
) -> tuple[Choice | None, Choice | None, list[Problem]]:
    here: Location = ("algorithm",)
    if not isinstance(given, Mapping) or "name" not in given:
        return (
            None,
            None,
            [(here, f"must be an object with a name, one of: {', '.join(ALGORITHMS)}")],
        )
    name = given["name"]
    if not isinstance(name, str) or name not in ALGORITHMS:
        return (
            None,
            None,
            [
                (
                    (*here, "name"),
                    f"unknown algorithm {name!r}; known: {', '.join(ALGORITHMS)}",
                )
            ],
        )
    algorithm = ALGORITHMS[name]
    own = {key: value for key, value in given.items() if key not in ("name", "weak_learner")}
    parameters, problems = resolve(algorithm.parameters, own, here, name)
    weak_learner, learner_problems = _resolve_weak_learner(given.get("weak_learner"), algorithm)
    return Choice(name, parameters), weak_learner, problems + learner_problems


def _resolve_weak_learner(given: Any, algorithm: type[Algorithm]) -> tuple[Choice | None, list[Problem]]:
    here: Location = ("algorithm", "weak_learner")
    if given is None:
        given = {"kind": algorithm.weak_learners[0]}
    if not isinstance(given, Mapping) or "kind" not in given:
        return None, [(here, f"must be an object with a kind, one of: {', '.join(WEAK_LEARNERS)}")]
    kind = given["kind"]
    if not isinstance(kind, str) or kind not in WEAK_LEARNERS:
        return None, [
            (
                (*here, "kind"),
                f"unknown weak learner {kind!r}; known: {', '.join(WEAK_LEARNERS)}",
            )
        ]
    if kind not in algorithm.weak_learners:
        allowed = ", ".join(algorithm.weak_learners)
        return None, [
            (
                (*here, "kind"),
                f"{algorithm.name} does not combine with {kind!r}; it takes: {allowed}",
            )
        ]
    own = {key: value for key, value in given.items() if key != "kind"}
    parameters, problems = resolve(WEAK_LEARNERS[kind].parameters, own, here, kind)
    return Choice(kind, parameters), problems


def refuse_classes(config: TrainingConfig, n_classes: int) -> None:
    """Errors: ConfigError if the algorithm cannot learn so many classes."""
    message = ALGORITHMS[config.algorithm.name].refusal(n_classes)
    if message:
        raise ConfigError([(("algorithm", "name"), message)])


def describe_algorithms() -> list[dict[str, Any]]:
    """Every algorithm with its source, guarantee, parameters and the weak learners that combine with it (JSON)."""
    return [
        {
            "name": algorithm.name,
            "summary": algorithm.summary,
            "source": algorithm.source,
            "guarantee": algorithm.guarantee,
            "parameters": json_schema(algorithm.parameters),
            "weak_learners": [_describe_weak_learner(WEAK_LEARNERS[kind]) for kind in algorithm.weak_learners],
        }
        for algorithm in ALGORITHMS.values()
    ]


def _describe_weak_learner(learner: type[WeakLearner]) -> dict[str, Any]:
    return {
        "kind": learner.kind,
        "summary": learner.summary,
        "source": learner.source,
        "parameters": json_schema(learner.parameters),
    }
