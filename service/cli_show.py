"""`edgewise show`."""

import math
from pathlib import Path
from typing import Any

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
        {"round": number, **{name: _finite(value) for name, value in zip(columns, row, strict=True)}}
        for number, row in enumerate(rows, start=1)
    ]


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
    lines += [
        "  ".join(f"{name} {'-' if value is None else f'{value:.6g}'}" for name, value in row.items())
        for row in rounds[-ROUNDS_SHOWN:]
    ]
    return "\n".join(lines)


def _choice(choice: dict[str, Any]) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in choice["parameters"].items())
    return f"{choice['name']} ({parameters})"
