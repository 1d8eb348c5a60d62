"""Declared parameters of algorithms and weak learners: defaults, limits, JSON schema, validation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Location = tuple[str | int, ...]
Problem = tuple[Location, str]
JSON_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
}


@dataclass(frozen=True)
class Parameter:
    """One named setting. `type` is a JSON schema type; limits are inclusive."""

    name: str
    type: str
    default: Any
    description: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None

    def schema(self) -> dict[str, Any]:
        """JSON schema of the value."""
        schema: dict[str, Any] = {"type": self.type, "default": self.default, "description": self.description}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.minimum is not None:
            schema["minimum"] = self.minimum
        if self.maximum is not None:
            schema["maximum"] = self.maximum
        return schema

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, or None."""
        wrong_bool = isinstance(value, bool) and self.type != "boolean"
        if wrong_bool or not any(isinstance(value, allowed) for allowed in JSON_TYPES[self.type]):
            return f"must be of type {self.type}, got {value!r}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, got {value!r}"
        if self.minimum is not None and not value >= self.minimum:  # nor is NaN
            return f"must be at least {self.minimum}, got {value!r}"
        if self.maximum is not None and not value <= self.maximum:
            return f"must be at most {self.maximum}, got {value!r}"
        return None


def resolve(
    declared: Sequence[Parameter], given: Mapping[str, Any], loc: Location, owner: str
) -> tuple[dict[str, Any], list[Problem]]:
    """Fill in defaults; returns the resolved values (sorted by name) and the problems found."""
    known = {parameter.name: parameter for parameter in declared}
    problems: list[Problem] = []
    for name, value in given.items():
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            problems.append(((*loc, name), f"unknown parameter {name!r} of {owner}; it takes: {listed}"))
        elif message := known[name].problem(value):
            problems.append(((*loc, name), message))
    values = {name: given.get(name, known[name].default) for name in sorted(known)}
    return values, problems


def json_schema(declared: Sequence[Parameter]) -> dict[str, Any]:
    """JSON schema of an object that holds these parameters."""
    properties = {parameter.name: parameter.schema() for parameter in declared}
    return {"type": "object", "properties": properties, "additionalProperties": False}
