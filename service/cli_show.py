"""`edgewise show`."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boost_core.conditions import NAMES
from boost_core.model import Model
from service.cli_output import reporting
from workers.model_file import model_sha256, read_model

ROUNDS_SHOWN = 10


def run(path: Path, *, as_json: bool) -> None:
    """Print a model's metadata and the figures of its rounds."""
    with reporting(as_json) as output:
        model = read_model(path)
        answer = {"model_sha256": model_sha256(model), **model.metadata(), "rounds": _rounds(model)}
        output.answer(answer, _text(answer))


def _rounds(model: Model) -> list[dict[str, Any]]:
    columns = vars(model.figures)
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [
        {"round": number, **_named(tuple(columns), row), **_conditions(model, number)}
        for number, row in enumerate(rows, start=1)
    ]


def _conditions(model: Model, number: int) -> dict[str, Any]:
    """What the round's weak learner met, where that was asked for."""
    if model.conditions is None:
        return {}
    return {"conditions": _named(NAMES, model.conditions[number - 1].tolist())}


def _named(names: Sequence[str], values: Sequence[float]) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in zip(names, values, strict=True)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _text(answer: dict[str, Any]) -> str:
    config, rounds = answer["config"], answer["rounds"]
    lines = [
        f"sha256       {answer['model_sha256']}",
        f"algorithm    {_choice(config['algorithm'])}",
        f"weak learner {_choice(config['weak_learner'])}",
        f"trained on   {answer['n_rows']} rows, {len(answer['features'])} features, "
        f"{len(answer['classes'])} classes; data fingerprint {answer['fingerprint']}",
        f"rounds       {len(rounds)}",
    ]
    if len(rounds) > ROUNDS_SHOWN:
        lines.append(f"the last {ROUNDS_SHOWN} (--json has all):")
    lines += [_figures(row) for row in rounds[-ROUNDS_SHOWN:]]
    return "\n".join(lines)


def _figures(row: dict[str, Any]) -> str:
    """One line; conditions on one of their own."""
    conditions = row.get("conditions")
    figures = {name: value for name, value in row.items() if name != "conditions"}
    line = "  ".join(f"{name} {'-' if value is None else f'{value:.6g}'}" for name, value in figures.items())
    return line if conditions is None else f"{line}\n    conditions: {_figures(conditions)}"


def _choice(choice: dict[str, Any]) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in choice["parameters"].items())
    return f"{choice['name']} ({parameters})"
