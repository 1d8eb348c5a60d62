"""Which algorithms and weak learners of this family combine, and what a request is told otherwise."""

import pytest

from boost_core.catalogue import ALGORITHMS, resolve_config
from boost_core.errors import ConfigError


def test_defaults_are_filled_in():
    config = resolve_config({"algorithm": {"name": "ecoc"}})
    shared = {"shrinkage": 1.0, "class_weight": None, "row_fraction": 1.0, "feature_fraction": 1.0}
    assert dict(config.algorithm.parameters) == {"code": "dense", "columns": 0, "decoding": "loss", **shared}
    assert config.weak_learner.name == "stump"
    config = resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "product"}}})
    assert dict(config.weak_learner.parameters) == {"factors": 2, "loop": True}


@pytest.mark.parametrize(
    ("algorithm", "learner"),
    [
        ("adaboost", "independent_stumps"),
        ("one_vs_all", "product"),
        ("one_vs_all", "independent_stumps"),
        ("all_pairs", "tree"),
        ("ecoc", "real_tree"),
    ],
)
def test_what_does_not_combine_is_refused_with_what_does(algorithm: str, learner: str):
    with pytest.raises(ConfigError) as caught:
        resolve_config({"algorithm": {"name": algorithm, "weak_learner": {"kind": learner}}})
    [(location, message)] = caught.value.problems
    assert location == ("algorithm", "weak_learner", "kind")
    for kind in ALGORITHMS[algorithm].weak_learners:
        assert kind in message


@pytest.mark.parametrize(
    ("learner", "parameter"),
    [
        ({"kind": "product", "factors": 1}, "factors"),
        ({"kind": "product", "factors": 9}, "factors"),
        ({"kind": "product", "loop": 1}, "loop"),
        ({"kind": "real_tree", "smoothing": -0.5}, "smoothing"),
        ({"kind": "independent_stumps", "alpha": "own"}, "alpha"),
        ({"kind": "tree", "criterion": "twoing"}, "criterion"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(learner: dict[str, object], parameter: str):
    with pytest.raises(ConfigError) as caught:
        resolve_config({"algorithm": {"name": "adaboost_mh", "weak_learner": learner}})
    assert caught.value.problems[0][0] == ("algorithm", "weak_learner", parameter)
