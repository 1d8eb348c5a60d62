"""The figures of a training's answer, also of one that ended before its first round."""

import json
from pathlib import Path

import pyarrow as pa

from service.requests import parse, prepare
from service.training_answer import training_answer
from tests.service.tables_of_data import request, write
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob


def test_a_training_without_a_round_has_figures_too(tmp_path: Path) -> None:
    # A constant feature and balanced classes: no weak learner is better than chance.
    write(tmp_path / "flat.parquet", {"x": pa.array([1.0] * 4), "kind": pa.array(["a", "b", "a", "b"])})
    body = request(data={"train": "flat.parquet", "label": "kind"}, algorithm={"name": "adaboost"})
    plan, config = prepare(parse(body), tmp_path)
    outcome = train_in_process(TrainingJob("j", 1, plan, config, 1), NoProgress())
    answer = training_answer(outcome, plan, "f" * 64)
    assert (answer["rounds"], answer["rounds_run"], answer["best_round"]) == (1, 1, 1)
    assert answer["stop_reason"] in {"edge_zero", "alpha_zero"}
    assert "most frequent class" in answer["warnings"][0]
    assert (answer["train_error"], answer["edge_last"]) == (0.5, 0.0)
    json.dumps(answer, allow_nan=False)


def test_a_training_without_an_error_says_so_in_json(tmp_path: Path) -> None:
    write(tmp_path / "easy.parquet", {"x": pa.array([1.0, 2.0, 3.0, 4.0]), "kind": pa.array([0, 0, 1, 1])})
    body = request(data={"train": "easy.parquet", "label": "kind"}, algorithm={"name": "adaboost"}, rounds=50)
    plan, config = prepare(parse(body), tmp_path)
    outcome = train_in_process(TrainingJob("j", 1, plan, config, 1), NoProgress())
    answer = training_answer(outcome, plan, "f" * 64)
    assert answer["stop_reason"] == "edge_one"
    assert answer["warnings"] == []
    assert (answer["train_error"], answer["edge_last"], answer["bound_holds"]) == (0.0, 1.0, True)
    json.dumps(answer, allow_nan=False)
