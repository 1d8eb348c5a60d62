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
    "array": (list, tuple),  # of numbers
}


@dataclass(frozen=True)
class Parameter:
    """One named setting. `type` is a JSON schema type; limits are inclusive, those of an array hold for its numbers.

    excludes: settings that must keep their defaults where this one does not. weak_learners: (choice, kinds) pairs: with
    that choice an algorithm takes these weak learners only. algorithms: those that take a value other than the default
    of a weak learner's setting (empty: all).
    """

    name: str
    type: str
    default: Any
    description: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    excludes: tuple[str, ...] = ()
    weak_learners: tuple[tuple[str, tuple[str, ...]], ...] = ()
    algorithms: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """JSON schema of the value."""
        schema: dict[str, Any] = {
            "type": self.type,
            "default": self.default,
            "description": self.description,
        }
        if self.choices:
            schema["enum"] = list(self.choices)
        limits = schema.setdefault("items", {"type": "number"}) if self.type == "array" else schema
        if self.minimum is not None:
            limits["minimum"] = self.minimum
        if self.maximum is not None:
            limits["maximum"] = self.maximum
        return schema

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, or None."""
        wrong_bool = isinstance(value, bool) and self.type != "boolean"
        if wrong_bool or not any(isinstance(value, allowed) for allowed in JSON_TYPES[self.type]):
            return f"must be of type {self.type}, got {value!r}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, got {value!r}"
        for number in value if self.type == "array" else (value,):
            if message := self._out_of_limits(number):
                return message
        return None

    def _out_of_limits(self, number: Any) -> str | None:
        if self.type == "array" and (isinstance(number, bool) or not isinstance(number, int | float)):
            return f"must be an array of numbers, got {number!r} in it"
        # written so that NaN is refused too
        if self.minimum is not None and not number >= self.minimum:
            return f"must be at least {self.minimum}, got {number!r}"
        if self.maximum is not None and not number <= self.maximum:
            return f"must be at most {self.maximum}, got {number!r}"
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
            problems.append(
                (
                    (*loc, name),
                    f"unknown parameter {name!r} of {owner}; it takes: {listed}",
                )
            )
        elif message := known[name].problem(value):
            problems.append(((*loc, name), message))
        elif _is_changed(known, given, name) and (rivals := _rivals(known, given, name)):
            problems.append(((*loc, name), f"cannot be combined with {', '.join(rivals)}"))
    values = {name: given.get(name, known[name].default) for name in sorted(known)}
    return values, problems


def _rivals(known: Mapping[str, Parameter], given: Mapping[str, Any], name: str) -> list[str]:
    return [other for other in known[name].excludes if _is_changed(known, given, other)]


def _is_changed(known: Mapping[str, Parameter], given: Mapping[str, Any], name: str) -> bool:
    return name in given and given[name] != known[name].default


def json_schema(declared: Sequence[Parameter]) -> dict[str, Any]:
    """JSON schema of an object that holds these parameters."""
    properties = {parameter.name: parameter.schema() for parameter in declared}
    return {"type": "object", "properties": properties, "additionalProperties": False}
