"""Requests for algorithms: defaults filled in, every problem named at its place."""

import json
from typing import Any

import pytest

from boost_core.catalogue import ALGORITHMS, WEAK_LEARNERS, describe_algorithms, refuse_classes, resolve_config
from boost_core.config import TrainingConfig
from boost_core.errors import BoostError, ConfigError
from boost_core.parameters import Parameter, json_schema, resolve


def body(**changes: Any) -> dict[str, Any]:
    return {"algorithm": {"name": "adaboost_mh"}, **changes}


def learner(**settings: Any) -> dict[str, Any]:
    return {"algorithm": {"name": "adaboost_mh", "weak_learner": settings}}


def test_defaults_are_filled_in():
    config = resolve_config(body())
    assert config.algorithm.name == "adaboost_mh"
    shared = {"shrinkage": 1.0, "row_fraction": 1.0, "feature_fraction": 1.0, "class_weight": None}
    assert config.algorithm.parameters == {"init_weights": "asymmetric", **shared}
    assert config.weak_learner.name == "hamming_tree"
    assert set(config.weak_learner.parameters) == {"max_depth", "max_leaves", "max_nodes", "votes"}
    assert (config.rounds, config.max_bins, config.seed) == (100, 255, 0)


def test_what_is_given_is_kept_and_parameters_are_sorted():
    given = learner(votes="factorised", kind="hamming_tree", max_leaves=21) | {"rounds": 7, "max_bins": 16, "seed": 5}
    config = resolve_config(given)
    expected = [("max_depth", 0), ("max_leaves", 21), ("max_nodes", 0), ("votes", "factorised")]
    assert list(config.weak_learner.parameters.items()) == expected
    assert (config.rounds, config.max_bins, config.seed) == (7, 16, 5)


def test_a_config_survives_json():
    config = resolve_config(learner(kind="hamming_tree", max_leaves=3))
    assert TrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ({}, [("algorithm",)]),
        ({"algorithm": None}, [("algorithm",)]),
        ({"algorithm": "adaboost"}, [("algorithm",)]),
        ({"algorithm": {}}, [("algorithm",)]),
        ({"algorithm": {"name": "gradient"}}, [("algorithm", "name")]),
        ({"algorithm": {"name": 3}}, [("algorithm", "name")]),
        ({"algorithm": {"name": "adaboost", "init_weights": "uniform"}}, [("algorithm", "init_weights")]),
        ({"algorithm": {"name": "adaboost_mh", "init_weights": "flat"}}, [("algorithm", "init_weights")]),
        ({"algorithm": {"name": "adaboost_mh", "init_weights": None}}, [("algorithm", "init_weights")]),
        ({"algorithm": {"name": "adaboost_mh", "eta": 1}}, [("algorithm", "eta")]),
        (learner(), [("algorithm", "weak_learner")]),
        (learner(kind="forest"), [("algorithm", "weak_learner", "kind")]),
        (learner(kind="stump", max_leaves=3), [("algorithm", "weak_learner", "max_leaves")]),
        (learner(kind="hamming_tree", max_leaves=1), [("algorithm", "weak_learner", "max_leaves")]),
        (learner(kind="hamming_tree", max_leaves=4097), [("algorithm", "weak_learner", "max_leaves")]),
        (learner(kind="hamming_tree", max_leaves=2.5), [("algorithm", "weak_learner", "max_leaves")]),
        (learner(kind="hamming_tree", max_leaves=True), [("algorithm", "weak_learner", "max_leaves")]),
        (learner(kind="hamming_tree", votes="both"), [("algorithm", "weak_learner", "votes")]),
        (body(rounds=0), [("rounds",)]),
        (body(rounds=-3), [("rounds",)]),
        (body(rounds="many"), [("rounds",)]),
        (body(rounds=None), [("rounds",)]),
        (body(max_bins=1), [("max_bins",)]),
        (body(max_bins=256), [("max_bins",)]),
        (body(seed=-1), [("seed",)]),
        (body(seed=2**63), [("seed",)]),
        (
            {"algorithm": {"name": "adaboost_mh", "a": 1, "weak_learner": {"kind": "stump", "b": 2}}, "rounds": 0},
            [("algorithm", "a"), ("algorithm", "weak_learner", "b"), ("rounds",)],
        ),
    ],
)
def test_every_problem_is_named_at_its_place(given: dict[str, Any], places: list[tuple[str, ...]]):
    with pytest.raises(ConfigError) as caught:
        resolve_config(given)
    assert [place for place, _ in caught.value.problems] == places
    for place, message in caught.value.problems:
        assert message
        assert ".".join(place) in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"algorithm": {"name": "gradient"}}, ["'gradient'", "adaboost", "adaboost_mh"]),
        (learner(kind="forest"), ["'forest'", "stump", "hamming_tree"]),
        (learner(kind="hamming_tree", max_leaves=1), ["at least 2", "1"]),
        (learner(kind="hamming_tree", depth=1), ["'depth'", "max_depth, max_leaves, max_nodes, votes"]),
        (body(rounds="many"), ["integer", "'many'"]),
        ({"algorithm": {"name": "adaboost", "eta": 1}}, ["'eta'", "adaboost", "shrinkage"]),
    ],
)
def test_a_message_names_the_value_and_what_is_possible(given: dict[str, Any], words: list[str]):
    with pytest.raises(ConfigError) as caught:
        resolve_config(given)
    [(_, message)] = caught.value.problems
    for word in words:
        assert word in message


def test_adaboost_learns_two_classes_only():
    binary, many = (resolve_config({"algorithm": {"name": name}}) for name in ("adaboost", "adaboost_mh"))
    refuse_classes(binary, 2)
    refuse_classes(many, 2)
    refuse_classes(many, 100)
    with pytest.raises(ConfigError, match="2 classes, the data have 3") as caught:
        refuse_classes(binary, 3)
    assert [place for place, _ in caught.value.problems] == [("algorithm", "name")]
    assert isinstance(caught.value, BoostError)


def test_descriptions_are_json_and_complete():
    described = json.loads(json.dumps(describe_algorithms()))
    assert [each["name"] for each in described] == list(ALGORITHMS)
    for each in described:
        keys = {"name", "summary", "source", "guarantee", "parameters", "weak_learners", "combinations"}
        assert set(each) == keys
        if each["name"] == "adaboost_mr":
            assert [(c["value"], c["weak_learners"]) for c in each["combinations"]] == [
                ("single", ["tree"]),
                ("votes", ["hamming_tree", "stump", "product"]),
            ]
        else:
            assert each["combinations"] == []
        assert all(each[key] for key in ("summary", "source", "guarantee"))
        assert [weak["kind"] for weak in each["weak_learners"]] == [
            kind for kind in ALGORITHMS[each["name"]].weak_learners if kind in WEAK_LEARNERS
        ]


def test_schema_of_parameters():
    declared = (
        Parameter("size", "integer", 3, "how many", minimum=1, maximum=9),
        Parameter("way", "string", "up", "where to", choices=("up", "down")),
    )
    assert json_schema(declared) == {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "default": 3, "description": "how many", "minimum": 1, "maximum": 9},
            "way": {"type": "string", "default": "up", "description": "where to", "enum": ["up", "down"]},
        },
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("integer", [1, -5], [1.0, "1", True, None, [1]]),
        ("number", [1, 1.5], ["1", False, None]),
        ("string", ["", "x"], [1, None]),
        ("boolean", [True, False], [0, "true", None]),
    ],
)
def test_values_must_have_the_declared_type(kind: str, good: list[Any], bad: list[Any]):
    declared = (Parameter("value", kind, None, "anything"),)
    for value in good:
        assert resolve(declared, {"value": value}, (), "test") == ({"value": value}, [])
    for value in bad:
        _, [(place, message)] = resolve(declared, {"value": value}, ("here",), "test")
        assert place == ("here", "value")
        assert kind in message


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_must_lie_within_their_limits(value: float):
    declared = (Parameter("value", "number", 0.5, "a share", minimum=0.0, maximum=1.0),)
    _, problems = resolve(declared, {"value": value}, (), "test")
    assert len(problems) == 1
