"""Every error has one row in the table, and leaves the service as valid problem details."""

import inspect
import json
from types import ModuleType

import pytest

import boost_core.errors
import service.errors
import workers.errors
from boost_core.errors import ConfigError
from service.errors import RULES, JobNotFound, RequestRefused, Rule, ServiceError, rule_for
from service.problem_details import UNEXPECTED, describe
from service.safe_json import encode


def errors_of(module: ModuleType) -> list[type[BaseException]]:
    return [
        value
        for _name, value in inspect.getmembers(module, inspect.isclass)
        if issubclass(value, BaseException) and value.__module__ == module.__name__
    ]


ALL = [error for module in (service.errors, workers.errors, boost_core.errors) for error in errors_of(module)]
BASES = {ServiceError, workers.errors.WorkersError, boost_core.errors.BoostError}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_is_placed_by_the_table(kind: type[BaseException]) -> None:
    placed = next(base for base in kind.__mro__ if base in RULES)
    assert placed is not BaseException
    if kind not in BASES and issubclass(kind, ServiceError):
        assert placed is not ServiceError, "a service error without a row of its own or of a named base"


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.slug)
def test_rows_are_sane(rule: Rule) -> None:
    assert 400 <= rule.status < 600
    assert rule.exit_code in {1, 2, 3, 4, 130}
    assert rule.type.startswith("urn:edgewise:problem:")


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    doc = service.errors.__doc__ or ""
    assert all(kind.__name__ in doc for kind in errors_of(service.errors))


def test_problems_keep_their_places() -> None:
    error = ConfigError([(("algorithm", "name"), "unknown algorithm 'x'"), (("rounds",), "must be at least 1")])
    problem = describe(error)
    assert problem.status == 422
    assert [place.loc for place in problem.errors] == [["algorithm", "name"], ["rounds"]]
    assert "algorithm.name: unknown algorithm 'x'" in problem.detail


def test_an_unexpected_error_keeps_its_text_inside() -> None:
    problem = describe(RuntimeError("secret path /root/x"))
    assert (problem.status, problem.detail) == (500, UNEXPECTED)


def test_broken_text_still_gives_json() -> None:
    error = RequestRefused([(("data", "\udcff"), "no file '\udcff\x00'")])
    assert json.loads(encode(describe(error).model_dump()))["errors"][0]["loc"] == ["data", "\\udcff"]


def test_the_nearest_base_counts() -> None:
    assert rule_for(JobNotFound("x")).status == 404
    assert rule_for(KeyError("x")).status == 500
