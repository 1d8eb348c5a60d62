"""A file written once, by the release that made the format: it stays loadable and stays the same model.

tests/golden/make.py writes it and prints the values below.
"""

from pathlib import Path

import pytest

from boost_core.model import FORMAT_VERSION, Feature
from tests.golden.make import CLASSES, GOLDEN, N_ROWS, N_SHOWN, golden_table, train_golden
from tests.workers.parquet_tables import write
from workers.model_file import model_sha256, read_model
from workers.scoring import predict_table

SHA256 = "e21a63edf2a33a31ed58e15e5b2517e0129d10099d10f43b859df3b5bf21a0a5"
LABELS = ["cedar", "cedar", "cedar", "cedar", "cedar", "cedar", "cedar", "ash", "birch", "cedar", "birch", "birch"]
N_WRONG = 44


def test_the_golden_file_is_of_this_format():
    assert FORMAT_VERSION == 1
    assert GOLDEN.name == "model_v1.edgewise"


def test_the_golden_file_loads():
    model = read_model(GOLDEN)
    assert model_sha256(model) == SHA256
    assert model.classes == CLASSES
    assert model.features == (Feature("girth", "int64"), Feature("height", "double"), Feature("evergreen", "bool"))
    assert model.config.algorithm.name == "adaboost_mh"
    assert (model.config.rounds, model.forest.n_rounds, model.n_rows) == (10, 10, N_ROWS)
    assert model.label == "label"


def test_the_golden_file_predicts_what_it_always_did(tmp_path: Path):
    found = predict_table(read_model(GOLDEN), [write(tmp_path / "golden.parquet", golden_table())])
    assert list(found.labels[:N_SHOWN]) == LABELS
    assert found.error == N_WRONG / N_ROWS
    assert found.error == pytest.approx(read_model(GOLDEN).figures.train_error[-1])


def test_training_it_again_gives_the_golden_model(tmp_path: Path):
    """The engine makes the models it always made; a change on purpose makes the golden file anew."""
    assert model_sha256(train_golden(tmp_path)) == SHA256
