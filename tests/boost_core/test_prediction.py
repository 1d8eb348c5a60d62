"""Prediction from raw rows: shapes, threads, classes."""

import numpy as np
import pytest

from boost_core import prediction, team
from boost_core.catalogue import resolve_config
from boost_core.model import Feature, Model
from boost_core.scores import predicted_classes
from tests.builders import bin_table, make_table, scores_by_round, train_alone


def trained_model(name: str = "adaboost_mh", n_classes: int = 4) -> Model:
    table = make_table(80, 3, n_classes, seed=n_classes)
    binned = bin_table(table)
    config = resolve_config({"algorithm": {"name": name}, "rounds": 15})
    result = train_alone(binned, config)
    return Model(
        config=config,
        features=tuple(Feature(f"x{j}", "double") for j in range(3)),
        label="kind",
        classes=tuple(range(n_classes)),
        thresholds=binned.binning.thresholds,
        threshold_start=binned.binning.threshold_start,
        forest=result.forest,
        figures=result.figures(),
        fingerprint=7,
        n_rows=80,
    )


@pytest.mark.parametrize(("name", "n_classes", "columns"), [("adaboost_mh", 4, 4), ("adaboost", 2, 1)])
def test_scores_and_classes(name: str, n_classes: int, columns: int):
    model = trained_model(name, n_classes)
    X = make_table(50, 3, n_classes, seed=99).X
    got = prediction.scores(model, X)
    assert got.dtype == np.int64
    assert got.shape == (50, columns)
    assert (got == scores_by_round(model.forest, X)[-1]).all()
    classes = prediction.predict(model, X)
    assert classes.dtype == np.int32
    assert (classes == predicted_classes(got)).all()
    assert set(classes.tolist()) <= set(range(n_classes))


@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads_gives_the_same_scores(monkeypatch: pytest.MonkeyPatch, threads: int):
    monkeypatch.setattr(team, "INLINE_WORK", -1)
    model, X = trained_model(), make_table(700, 3, 4, seed=1).X
    assert (prediction.scores(model, X, threads) == prediction.scores(model, X)).all()


def test_rows_in_any_memory_layout():
    model, X = trained_model(), make_table(40, 3, 4, seed=2).X
    wanted = prediction.scores(model, X)
    assert (prediction.scores(model, np.asfortranarray(X)) == wanted).all()
    assert (prediction.scores(model, np.repeat(X, 2, axis=0)[::2]) == wanted).all()
    assert (prediction.scores(model, X[::-1])[::-1] == wanted).all()


def test_no_rows():
    assert prediction.predict(trained_model(), np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("shape", [(3,), (5, 2), (5, 4), (1, 3, 1)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]):
    with pytest.raises(ValueError, match=r"n_rows, 3"):
        prediction.scores(trained_model(), np.zeros(shape))


def test_metadata_is_json_ready():
    metadata = trained_model().metadata()
    assert metadata["fingerprint"] == "0000000000000007"
    assert metadata["label"] == "kind"
    assert metadata["classes"] == [0, 1, 2, 3]
    assert (metadata["n_columns"], metadata["speech"], metadata["decoding"]) == (4, "votes", "argmax")
    assert metadata["features"][0] == {"name": "x0", "type": "double"}
    assert metadata["config"]["rounds"] == 15
