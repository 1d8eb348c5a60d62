"""`edgewise algorithms`."""

from typing import Any

from boost_core.catalogue import describe_algorithms
from service.cli_output import reporting


def run(*, as_json: bool) -> None:
    """Print what a training request can ask for."""
    with reporting(as_json) as output:
        algorithms = describe_algorithms()
        output.answer({"algorithms": algorithms}, "\n\n".join(map(_text, algorithms)))


def _text(algorithm: dict[str, Any]) -> str:
    lines = [f"{algorithm['name']}: {algorithm['summary']}", *_parameters(algorithm["parameters"], "  ")]
    for each in algorithm["combinations"]:
        kinds = ", ".join(each["weak_learners"])
        lines.append(f"  with {each['parameter']} {each['value']}: weak learners {kinds}")
    for learner in algorithm["weak_learners"]:
        lines.append(f"  weak learner {learner['kind']}: {learner['summary']}")
        lines += _parameters(learner["parameters"], "    ")
    return "\n".join(lines)


def _parameters(schema: dict[str, Any], indent: str) -> list[str]:
    return [
        f"{indent}{name} (default {declared['default']}): {declared['description']}"
        for name, declared in schema["properties"].items()
    ]
