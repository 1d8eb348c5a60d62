"""Class weights: what the weights of a class's rows are multiplied with, for every algorithm.

    balanced    n / (K n_l), n_l being the rows of class l, so that every class has the same weight
    a map       the weight of each label named; 1 for the others

A map names labels, so it becomes a list in the order of the classes as soon as they are known (`in_class_order`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boost_core.collective import Collective
from boost_core.config import TrainingConfig
from boost_core.errors import ConfigError
from boost_core.parameters import Parameter
from boost_core.row_weights import Floats, Integers, class_mass, copies_of
from boost_core.shard import Shard

NAME = "class_weight"
BALANCED = "balanced"
LEAST, MOST = 1e-9, 1e9


@dataclass(frozen=True)
class ClassWeight(Parameter):
    """The setting, which is null, a word or an object."""

    def schema(self) -> dict[str, Any]:
        """JSON schema of the value."""
        weights = {"type": "number", "minimum": LEAST, "maximum": MOST}
        kinds = [
            {"type": "null"},
            {"type": "string", "enum": [BALANCED]},
            {"type": "object", "additionalProperties": weights},
        ]
        return {"anyOf": kinds, "default": None, "description": self.description}

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, or None. A list is what a map becomes."""
        if value is None or value == BALANCED:
            return None
        if isinstance(value, Mapping):
            wrong = [f"{label!r}: {weight!r}" for label, weight in value.items() if not _is_weight(weight)]
        elif isinstance(value, list | tuple):
            wrong = [repr(weight) for weight in value if not _is_weight(weight)]
        else:
            return f'must be null, "{BALANCED}" or an object of weights by label, got {value!r:.100}'
        return f"weights must be numbers from {LEAST:g} to {MOST:g}, got {', '.join(wrong):.200}" if wrong else None


CLASS_WEIGHT = ClassWeight(
    NAME,
    "object",
    None,
    "what rows weigh by class; balanced: every class as much as the others; an object: the weight of each label named",
)


def _is_weight(weight: Any) -> bool:
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    return is_number and math.isfinite(weight) and LEAST <= weight <= MOST


def in_class_order(config: TrainingConfig, classes: Sequence[Any]) -> TrainingConfig:
    """The configuration with a map of class weights as a list, float by class.

    Errors: ConfigError names labels that no class has. Keys are compared as text, true and false as in JSON.
    """
    given = config.algorithm.parameters.get(NAME)
    if not isinstance(given, Mapping):
        return config
    place = {key_of(label): index for index, label in enumerate(classes)}
    unknown = [label for label in given if label not in place]
    if unknown:
        known = ", ".join(list(place)[:20])
        problem = f"no class has the label {', '.join(map(repr, unknown)):.200}; the classes are: {known}"
        raise ConfigError([(("algorithm", NAME, unknown[0]), problem)])
    weights = [1.0] * len(classes)
    for label, weight in given.items():
        weights[place[label]] = float(weight)
    parameters = dict(config.algorithm.parameters) | {NAME: weights}
    return replace(config, algorithm=replace(config.algorithm, parameters=parameters))


def key_of(label: Any) -> str:
    """A label as the key of an object in JSON."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def class_factors(config: TrainingConfig, class_counts: Integers) -> Floats | None:
    """What each class's rows are multiplied with, float64 [n_classes]; None: nothing.

    Errors: ConfigError if the weights are not those of these classes.
    """
    given, n_classes = config.algorithm.parameters.get(NAME), class_counts.shape[0]
    if given is None:
        return None
    if given == BALANCED:
        factors = [int(class_counts.sum()) / (n_classes * int(count)) if count else 1.0 for count in class_counts]
        return np.array(factors)
    if isinstance(given, Mapping) or len(given) != n_classes:
        raise ConfigError([(("algorithm", NAME), f"must be a weight for each of the {n_classes} classes")])
    return np.array(given, np.float64)


def weighed(shard: Shard, factors: Floats, collective: Collective) -> Shard:
    """The shard with its rows' weights multiplied. All members call it at the same time."""
    copies = np.ones(shard.n_rows) if shard.copies is None else shard.copies.astype(np.float64)
    return replace(shard, copies=copies_of(copies * factors[shard.labels], collective))


def mass_of(shard: Shard, n_classes: int, collective: Collective) -> Integers:
    """Rows of each class over all members, counted as often as their copies."""
    return collective.sum(class_mass(shard.labels, shard.copies, n_classes))
