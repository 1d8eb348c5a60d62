"""Warm start: training goes on from a finished model, as if it had never ended.

The model's rounds are taken over with their figures; `rounds` of the new run counts all rounds, those of the model too.
What decides a round must be as it was: algorithm, weak learner, bins and seed, features and classes, thresholds.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from boost_core.binning import Binning
from boost_core.catalogue import plans_rounds
from boost_core.conditions import Conditions
from boost_core.config import TrainingConfig
from boost_core.errors import ConfigError
from boost_core.model import Feature, Label, Model
from boost_core.records import RoundRecord
from boost_core.replay import rounds_of
from boost_core.start import ModelSoFar

MAY_DIFFER = ("rounds", "stopping", "calibration", "conditions")
HERE = ("warm_start",)
MOST_SHOWN = 5


def model_so_far(model: Model, tolerance: float) -> ModelSoFar:
    """The model's rounds as a start; tolerance: of a round in ln loss.

    A file does not keep how far rounding may have moved the loss. What has been used up of it so far is known, and as
    every further round adds its own share, that is enough.
    """
    figures, forest = model.figures, model.forest
    rounds = rounds_of(forest)
    records = tuple(_record(model, number) for number in range(forest.n_rounds))
    used = max((r.ln_loss - r.ln_bound for r in records[-1:]), default=0.0)
    perfect = bool(forest.n_rounds and figures.edge[-1] >= 1.0)
    weak_learners, multipliers = tuple(each for each, _ in rounds), tuple(each for _, each in rounds)
    return ModelSoFar(weak_learners, multipliers, records, max(used, 0.0) + tolerance, perfect)


def _record(model: Model, number: int) -> RoundRecord:
    figures, forest = model.figures, model.forest
    trees = slice(int(forest.round_start[number]), int(forest.round_start[number + 1]) + 1)
    valid_error = float(figures.valid_error[number])
    ln_loss, ln_bound = float(figures.ln_loss[number]), float(figures.ln_bound[number])
    return RoundRecord(
        round=number + 1,
        edge=float(figures.edge[number]),
        alpha=float(figures.alpha[number]),
        loss=math.exp(min(ln_loss, 700.0)),
        ln_loss=ln_loss,
        bound=math.exp(min(ln_bound, 700.0)),
        ln_bound=ln_bound,
        error_bound=None,
        train_error=float(figures.train_error[number]),
        strict_train_error=math.nan,
        valid_error=None if math.isnan(valid_error) else valid_error,
        n_leaves=int(np.ptp(forest.leaf_start[trees])),
        bytes_reduced=0,
        conditions=None if model.conditions is None else Conditions.from_figures(model.conditions[number].tolist()),
    )


def refuse_other_kind(
    model: Model, config: TrainingConfig, features: tuple[Feature, ...], classes: tuple[Label, ...]
) -> None:
    """Errors: ConfigError if a run of this config on these features and classes would not go on with the model."""
    problems = [*_config_differences(model.config, config), *_schema_differences(model, features, classes)]
    if config.rounds < model.forest.n_rounds:
        had = f"the model has {model.forest.n_rounds} rounds already, got rounds {config.rounds}"
        problems.append(f"{had}; rounds counts those of the model too")
    if plans_rounds(config):
        problems.append(f"{config.algorithm.name} plans all of its rounds before the first one; train it anew")
    if problems:
        raise ConfigError([(HERE, problem) for problem in problems])


def _config_differences(before: TrainingConfig, now: TrainingConfig) -> list[str]:
    old, new = _flat(before.to_dict()), _flat(now.to_dict())
    names = sorted(name for name in old.keys() | new.keys() if name.split(".")[0] not in MAY_DIFFER)
    return [
        f"{name} was {old.get(name)!r} in the model, got {new.get(name)!r}; set it as it was"
        for name in names
        if old.get(name) != new.get(name)
    ]


def _flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        place = f"{path}{name}"
        found |= _flat(value, f"{place}.") if isinstance(value, Mapping) else {place: value}
    return found


def _schema_differences(model: Model, features: tuple[Feature, ...], classes: tuple[Label, ...]) -> list[str]:
    problems = []
    old, new = ({each.name: each.type for each in every} for every in (model.features, features))
    changed = [f"{name} was {old[name]}, is {new[name]}" for name in old.keys() & new.keys() if old[name] != new[name]]
    changed += [f"{name} is missing" for name in old if name not in new]
    changed += [f"{name} is new" for name in new if name not in old]
    if not changed and tuple(old) != tuple(new):
        changed = ["they are in another order"]
    if changed:
        problems.append(f"the data's features are not the model's: {', '.join(sorted(changed)[:MOST_SHOWN])}")
    if tuple(model.classes) != tuple(classes):
        other = sorted(map(str, set(model.classes) ^ set(classes)))[:MOST_SHOWN]
        problems.append(f"the data's classes are not the model's; in one of them only: {', '.join(other)}")
    return problems


def refuse_other_bins(model: Model, binning: Binning) -> None:
    """Errors: ConfigError if the rows of this binning fall into other bins than those of the model."""
    old_start, names = model.threshold_start, [feature.name for feature in model.features]
    other = [
        name
        for j, name in enumerate(names)
        if not np.array_equal(model.thresholds[old_start[j] : old_start[j + 1]], binning.of_feature(j))
    ]
    if other:
        shown = ", ".join(other[:MOST_SHOWN])
        message = f"the training data have other thresholds than the model's in {len(other)} features ({shown})"
        raise ConfigError([(HERE, f"{message}; go on with the data that the model was trained on")])
