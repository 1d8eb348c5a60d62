"""Training requests: defaults, what is the same request, and what the engine gets of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core.config import Stopping
from service.errors import Problem, RequestRefused
from service.requests import parse, prepare, resolve
from service.submission import body_hash
from tests.service.tables_of_data import FEATURES, request

MINIMAL: dict[str, Any] = {
    "data": {"train": "trees.parquet", "label": "kind"},
    "algorithm": {"name": "adaboost_mh"},
    "rounds": 3,
}


def test_the_example_of_the_design_is_a_request(data_root: Path) -> None:
    body = {
        "name": "letters",
        "data": {
            "train": "trees.parquet",
            "valid": "trees.test.parquet",
            "label": "kind",
            "features": None,
            "exclude": [],
            "weight": None,
            "categorical": "auto",
        },
        "algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 21}},
        "rounds": 500,
        "max_bins": 255,
        "seed": 0,
        "stopping": {"metric": "error", "patience": 50},
        "resources": {"workers": "auto"},
    }
    plan, config = prepare(parse(body), data_root)
    assert [feature.name for feature in plan.features] == list(FEATURES)
    assert (config.rounds, config.max_bins, config.seed) == (500, 255, 0)
    assert config.weak_learner.parameters["max_leaves"] == 21
    assert config.stopping == Stopping("error", 50)


def test_defaults_are_filled_in(data_root: Path) -> None:
    full = parse(MINIMAL)
    assert (full.name, full.max_bins, full.seed, full.resources.workers) == ("model", 255, 0, "auto")
    data, config = resolve(full, data_root)
    assert (data.features, data.exclude, data.valid) == (None, (), None)
    assert config.algorithm.name == "adaboost_mh"


def test_a_request_survives_the_store(data_root: Path) -> None:
    full = parse(request())
    body = full.model_dump(mode="json")
    assert parse(body) == full
    assert resolve(parse(body), data_root) == resolve(full, data_root)


def test_spelled_out_defaults_are_the_same_request() -> None:
    spelled = MINIMAL | {"seed": 0, "stopping": None, "resources": {"threads": None, "workers": "auto"}}
    hashes = {
        body_hash(parse(body).model_dump(mode="json")) for body in (MINIMAL, spelled, dict(reversed(spelled.items())))
    }
    assert len(hashes) == 1
    assert body_hash(parse(MINIMAL | {"seed": 1}).model_dump(mode="json")) not in hashes


def test_values_that_ask_for_nothing_are_accepted(data_root: Path) -> None:
    idle = {"shrinkage": 1.0, "row_fraction": 1, "feature_fraction": 1.0}
    _data, config = resolve(parse(MINIMAL | {"algorithm": {"name": "adaboost_mh"} | idle}), data_root)
    assert config == resolve(parse(MINIMAL), data_root)[1]


def test_several_files_are_one_table(data_root: Path) -> None:
    both = ["trees.test.parquet", "trees.parquet"]
    data, _config = resolve(parse(MINIMAL | {"data": {"train": both, "label": "kind"}}), data_root)
    assert data.train == tuple(str(data_root.resolve() / name) for name in sorted(both))
    glob, _config = resolve(parse(MINIMAL | {"data": {"train": "*.parquet", "label": "kind"}}), data_root)
    assert glob.train == data.train


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PLACES = st.sampled_from(
    [
        (), ("name",), ("data",), ("data", "train"), ("data", "valid"), ("data", "label"), ("data", "features"),
        ("data", "exclude"), ("data", "weight"), ("algorithm",), ("algorithm", "name"), ("algorithm", "weak_learner"),
        ("algorithm", "x"), ("rounds",), ("max_bins",), ("seed",), ("stopping",), ("resources",),
        ("resources", "workers"), ("resources", "threads"), ("x",),
    ]
)  # fmt: skip


def replaced(body: Any, place: tuple[str, ...], value: Any) -> Any:
    if not place:
        return value
    return body | {place[0]: replaced(body.get(place[0]), place[1:], value)}


@given(PLACES, JSON)
def test_whatever_stands_anywhere_is_taken_or_refused_in_words(place: tuple[str, ...], value: Any) -> None:
    for loc, message in problems(replaced(request(), place, value)):
        assert loc[: len(place)] == place[: len(loc)] or len(loc) <= len(place)
        assert message


def problems(body: Any) -> Sequence[Problem]:
    """What is wrong with a body; never any other error."""
    try:
        parse(body)
    except RequestRefused as error:
        return error.problems
    return ()


@pytest.mark.parametrize("body", [None, 3, "x", [], [MINIMAL]])
def test_a_body_that_is_no_object(body: object) -> None:
    with pytest.raises(RequestRefused, match="dictionary"):
        parse(body)
