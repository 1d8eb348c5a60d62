"""The algorithms and weak learners that exist, by name, and the resolving of a request's choices."""

from collections.abc import Mapping
from typing import Any

from boost_core.algorithms.adaboost import AdaBoost
from boost_core.algorithms.adaboost_cost import AdaBoostCost
from boost_core.algorithms.adaboost_m1 import AdaBoostM1
from boost_core.algorithms.adaboost_m2 import AdaBoostM2
from boost_core.algorithms.adaboost_mh import AdaBoostMH
from boost_core.algorithms.adaboost_mm import AdaBoostMM
from boost_core.algorithms.adaboost_mm_fixed import AdaBoostMMFixed
from boost_core.algorithms.adaboost_mr import AdaBoostMR
from boost_core.algorithms.all_pairs import AllPairs
from boost_core.algorithms.base import Algorithm, PlansRounds, RefusesSettings
from boost_core.algorithms.cd_mcboost import CDMCBoost
from boost_core.algorithms.ecoc import Ecoc
from boost_core.algorithms.gd_mcboost import GDMCBoost
from boost_core.algorithms.multiclass_adaboost import MulticlassAdaBoost
from boost_core.algorithms.one_vs_all import OneVsAll
from boost_core.algorithms.os_exponential import OSExponential
from boost_core.algorithms.os_zero_one import OSZeroOne
from boost_core.algorithms.samme import Samme
from boost_core.binning import MAX_BINS
from boost_core.class_weights import CLASS_WEIGHT
from boost_core.config import Choice, Stopping, TrainingConfig
from boost_core.errors import ConfigError
from boost_core.parameters import Location, Parameter, Problem, json_schema, resolve
from boost_core.sampling import SAMPLING
from boost_core.stopping import ERROR, MEANINGS, METRICS, OF_VALIDATION
from boost_core.weak_learners.base import WeakLearner
from boost_core.weak_learners.hamming_tree import HammingTree
from boost_core.weak_learners.independent_stumps import IndependentStumps
from boost_core.weak_learners.product import Product
from boost_core.weak_learners.real_tree import RealTree
from boost_core.weak_learners.regression_stump import RegressionStump
from boost_core.weak_learners.regression_tree import RegressionTree
from boost_core.weak_learners.stump import Stump
from boost_core.weak_learners.tree import SingleLabelTree
from boost_core.weak_learners.vector_tree import VectorTree

ALGORITHMS: dict[str, type[Algorithm]] = {
    algorithm.name: algorithm
    for algorithm in (
        AdaBoost,
        AdaBoostMH,
        OneVsAll,
        AllPairs,
        Ecoc,
        AdaBoostMM,
        AdaBoostMMFixed,
        OSExponential,
        OSZeroOne,
        AdaBoostMR,
        AdaBoostM1,
        AdaBoostM2,
        Samme,
        AdaBoostCost,
        MulticlassAdaBoost,
        CDMCBoost,
        GDMCBoost,
    )
}
WEAK_LEARNERS: dict[str, type[WeakLearner]] = {
    learner.kind: learner
    for learner in (
        Stump,
        HammingTree,
        SingleLabelTree,
        Product,
        IndependentStumps,
        RealTree,
        VectorTree,
        RegressionStump,
        RegressionTree,
    )
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
CALIBRATIONS = ("temperature",)


# What every algorithm takes whose steps are not planned beforehand.
SHRINKAGE = Parameter(
    "shrinkage", "number", 1.0, "learning rate: every step is multiplied with it", minimum=1e-6, maximum=1.0
)
STOPPING_PARAMETERS = (
    Parameter("metric", "string", ERROR, MEANINGS, choices=tuple(METRICS)),
    Parameter("patience", "integer", 50, "rounds without improvement", minimum=1, maximum=1_000_000),
    Parameter("min_delta", "number", 0.0, "what counts as an improvement: more than this", minimum=0.0, maximum=1e9),
)


def parameters_of(algorithm: type[Algorithm]) -> tuple[Parameter, ...]:
    """An algorithm's own parameters and those it shares with others."""
    shared = (CLASS_WEIGHT,) if algorithm.fixed_steps else (SHRINKAGE, CLASS_WEIGHT)
    return (*algorithm.parameters, *shared, *SAMPLING)


def resolve_config(body: Mapping[str, Any]) -> TrainingConfig:
    """Fill in the defaults of a request's algorithm, rounds, max_bins, seed, stopping, calibration and conditions.

    Errors: ConfigError with every problem found, each at its place in the body.
    """
    algorithm, weak_learner, problems = _resolve_algorithm(body.get("algorithm"))
    given = {name: body[name] for name in ("rounds", "max_bins", "seed") if name in body}
    run, run_problems = resolve(RUN_PARAMETERS, given, (), "the run")
    problems += run_problems
    stopping, stopping_problems = _resolve_stopping(body.get("stopping"))
    problems += stopping_problems
    calibration = body.get("calibration")
    if calibration is not None and calibration not in CALIBRATIONS:
        problems.append((("calibration",), f"must be null or one of {', '.join(CALIBRATIONS)}, got {calibration!r}"))
    conditions = body.get("conditions", False)
    problems += _refused_conditions(conditions, algorithm, weak_learner)
    if problems or algorithm is None or weak_learner is None:
        raise ConfigError(problems)
    numbers = (run["rounds"], run["max_bins"], run["seed"])
    return TrainingConfig(algorithm, weak_learner, *numbers, stopping, calibration, conditions)


def _refused_conditions(wanted: Any, algorithm: Choice | None, weak_learner: Choice | None) -> list[Problem]:
    """Conditions are about weak learners that answer with one label, and costs of every label."""
    here: Location = ("conditions",)
    if not isinstance(wanted, bool):
        return [(here, f"must be true or false, got {wanted!r}")]
    if not wanted or algorithm is None or weak_learner is None:
        return []
    if weak_learner.name == SingleLabelTree.kind and algorithm.name != AdaBoost.name:
        return []
    message = f"{algorithm.name} with {weak_learner.name!r} does not answer with one label of all, which they are about"
    return [(here, f"{message}; they go with the weak learner {SingleLabelTree.kind!r}")]


def _resolve_stopping(given: Any) -> tuple[Stopping | None, list[Problem]]:
    here: Location = ("stopping",)
    if given is None:
        return None, []
    if not isinstance(given, Mapping):
        return None, [(here, "must be an object with metric and patience, or null")]
    values, problems = resolve(STOPPING_PARAMETERS, given, here, "early stopping")
    return Stopping(**values), problems


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
    parameters, problems = resolve(parameters_of(algorithm), own, here, name)
    weak_learner, learner_problems = _resolve_weak_learner(given.get("weak_learner"), algorithm, parameters)
    return Choice(name, parameters), weak_learner, problems + learner_problems


def _combining(algorithm: type[Algorithm], parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """The weak learners that the algorithm takes with these parameters; the first one is the default."""
    kinds = algorithm.weak_learners
    for parameter in algorithm.parameters:
        for choice, some in parameter.weak_learners:
            if parameters[parameter.name] == choice:
                kinds = tuple(kind for kind in kinds if kind in some)
    return kinds


def _misplaced(kind: str, values: Mapping[str, Any], algorithm: type[Algorithm], here: Location) -> list[Problem]:
    """The settings of a weak learner that are for other algorithms only."""
    return [
        ((*here, each.name), f"{values[each.name]!r} does not combine with {algorithm.name}, only with: {listed}")
        for each in WEAK_LEARNERS[kind].parameters
        if each.algorithms and algorithm.name not in each.algorithms and values[each.name] != each.default
        for listed in [", ".join(each.algorithms)]
    ]


def _resolve_weak_learner(
    given: Any, algorithm: type[Algorithm], chosen: Mapping[str, Any]
) -> tuple[Choice | None, list[Problem]]:
    here: Location = ("algorithm", "weak_learner")
    kinds = _combining(algorithm, chosen)
    if given is None:
        given = {"kind": kinds[0] if kinds else algorithm.weak_learners[0]}
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
    if kind not in kinds:
        allowed = ", ".join(kinds)
        return None, [
            (
                (*here, "kind"),
                f"{algorithm.name} does not combine with {kind!r}; as it is set it takes: {allowed}",
            )
        ]
    own = {key: value for key, value in given.items() if key != "kind"}
    parameters, problems = resolve(WEAK_LEARNERS[kind].parameters, own, here, kind)
    return Choice(kind, parameters), problems or _misplaced(kind, parameters, algorithm, here)


def refuse_classes(config: TrainingConfig, n_classes: int) -> None:
    """Errors: ConfigError if the algorithm cannot learn so many classes, or not with these settings."""
    name, parameters = config.algorithm.name, config.algorithm.parameters
    message = ALGORITHMS[name].refusal(n_classes)
    if message:
        raise ConfigError([(("algorithm", "name"), message)])
    algorithm: object = ALGORITHMS[name]
    if isinstance(algorithm, RefusesSettings):
        refused = algorithm.settings_refusal(parameters, n_classes, config.rounds)
        if refused is not None:
            raise ConfigError([(("algorithm", refused[0]), f"{name}: {refused[1]}")])


def plans_rounds(config: TrainingConfig) -> bool:
    """Whether every round depends on how many there will be, so that a finished run cannot go on."""
    algorithm: object = ALGORITHMS[config.algorithm.name]
    return isinstance(algorithm, PlansRounds) and algorithm.plans_rounds(config.algorithm.parameters)


def refuse_missing_validation(config: TrainingConfig, has_valid: bool) -> None:
    """Errors: ConfigError if early stopping or calibration needs validation rows and there are none."""
    problems: list[Problem] = []
    if not has_valid and config.stopping is not None and config.stopping.metric in OF_VALIDATION:
        asked = f"early stopping on {config.stopping.metric} needs validation rows"
        problems.append((("stopping",), f"{asked}: name them in data.valid, or stop on a metric of training"))
    if not has_valid and config.calibration is not None:
        problems.append((("calibration",), "calibration needs validation rows: name them in data.valid"))
    if problems:
        raise ConfigError(problems)


def describe_algorithms() -> list[dict[str, Any]]:
    """Every algorithm with its source, guarantee, parameters and the weak learners that combine with it (JSON)."""
    return [
        {
            "name": algorithm.name,
            "summary": algorithm.summary,
            "source": algorithm.source,
            "guarantee": algorithm.guarantee,
            "parameters": json_schema(parameters_of(algorithm)),
            "weak_learners": [_describe_weak_learner(WEAK_LEARNERS[kind]) for kind in algorithm.weak_learners],
            "combinations": _combinations(algorithm),
        }
        for algorithm in ALGORITHMS.values()
    ]


def _combinations(algorithm: type[Algorithm]) -> list[dict[str, Any]]:
    """Where a parameter's value decides which weak learners combine: the kinds by value."""
    return [
        {"parameter": parameter.name, "value": value, "weak_learners": list(kinds)}
        for parameter in algorithm.parameters
        for value, kinds in parameter.weak_learners
    ]


def _describe_weak_learner(learner: type[WeakLearner]) -> dict[str, Any]:
    return {
        "kind": learner.kind,
        "summary": learner.summary,
        "source": learner.source,
        "parameters": json_schema(learner.parameters),
    }
