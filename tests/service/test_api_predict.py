"""Prediction over HTTP: rows and columns, missing values, mistakes with their places, caps."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from boost_core.prediction import predict
from service.settings import Settings
from tests.service.live_server import in_thread
from tests.service.polling import wait_for_job
from tests.service.tables_of_data import CLASSES, FEATURES, request, write
from tests.service.test_api_bad_input import checked_problem
from workers.model_file import read_model

ROWS: list[list[float | None]] = [[0.1, 0.2, 0.3], [2.0, 4.0, 6.0], [None, None, None]]
CAP = 50


@pytest.fixture(scope="module")
def model_files() -> list[Path]:
    """The server's model files, once it runs."""
    return []


@pytest.fixture(scope="module")
def predictor(
    data_root: Path, tmp_path_factory: pytest.TempPathFactory, model_files: list[Path]
) -> Iterator[httpx.Client]:
    """A client of a server with one model."""
    state = tmp_path_factory.mktemp("predict") / "state"
    settings = Settings(data_root=data_root, state_dir=state, predict_rows_cap=CAP)
    with in_thread(settings) as (client, _app):
        job = client.post("/v1/jobs", json=request(rounds=20)).json()
        wait_for_job(client, job["id"], "succeeded")
        model_files += (state / "models").iterdir()
        yield client


def test_several_labels_a_row(data_root: Path, tmp_path: Path) -> None:
    table = pq.read_table(data_root / "trees.parquet", columns=["kind"]).to_pydict()
    several = [[kind, "tall"] if kind == "cedar" else [kind] for kind in table["kind"]]
    columns = pq.read_table(data_root / "trees.parquet", columns=list(FEATURES)).to_pydict()
    write(
        tmp_path / "data/sets.parquet",
        {name: pa.array(values) for name, values in columns.items()} | {"kinds": pa.array(several)},
    )
    data = {"train": "sets.parquet", "valid": "sets.parquet", "label": {"list": "kinds"}}
    settings = Settings(data_root=tmp_path / "data", state_dir=tmp_path / "state", poll_seconds=0.2)
    with in_thread(settings) as (client, _app):
        job = client.post("/v1/jobs", json=request(data=data, name="sets")).json()
        job = wait_for_job(client, job["id"], "succeeded")
        body = {"rows": ROWS, "output": ["labels", "scores", "probabilities"]}
        answer = post(client, body, "/v1/models/sets/predict").json()
    assert 0 <= job["answer"]["valid_error"] == job["answer"]["train_error"] <= 0.5
    assert (job["answer"]["classes"], job["answer"]["rows_left_out"]) == (4, 0)
    assert answer["classes"] == ["ash", "birch", "cedar", "tall"]
    for labels, row, chances in zip(answer["labels"], answer["scores"], answer["probabilities"], strict=True):
        assert labels == [name for name, score in zip(answer["classes"], row, strict=True) if score > 0]
        assert chances == pytest.approx([1 / (1 + np.exp(-2 * score)) for score in row])


def post(client: httpx.Client, body: Any, path: str = "/v1/models/trees/predict") -> httpx.Response:
    """Sends NaN and Infinity as they are: httpx would refuse them."""
    return client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})


def labels(client: httpx.Client, body: Any) -> list[Any]:
    answer = post(client, body)
    assert answer.status_code == 200, answer.text
    found: list[Any] = answer.json()["labels"]
    return found


def test_the_answer(predictor: httpx.Client) -> None:
    answer = post(predictor, {"rows": ROWS}).json()
    version = predictor.get("/v1/models/trees").json()["versions"][0]
    assert answer["model"] == {"name": "trees", "version": 1, "sha256": version["sha256"]}
    assert (answer["rows"], answer["classes"]) == (3, list(CLASSES))
    assert set(answer["labels"]) <= set(CLASSES)
    assert "scores" not in answer
    assert post(predictor, {"rows": ROWS}, "/v1/models/trees/versions/1/predict").json()["labels"] == answer["labels"]


def test_labels_are_those_of_the_model_file(predictor: httpx.Client, model_files: list[Path], data_root: Path) -> None:
    [path] = model_files
    model = read_model(path)
    table = pq.read_table(data_root / "trees.test.parquet")
    columns = {name: table.column(name).to_pylist() for name in FEATURES}
    matrix = np.array([columns[name] for name in FEATURES], dtype=np.float64).T.copy()
    expected = [model.classes[index] for index in predict(model, matrix)]
    assert labels(predictor, {"columns": columns}) == expected
    assert len(set(expected)) == 3


def test_every_form_of_input_gives_the_same_labels(predictor: httpx.Client) -> None:
    expected = labels(predictor, {"rows": ROWS})
    named = [dict(zip(FEATURES, row, strict=True)) for row in ROWS]
    backwards = [dict(reversed(row.items())) | {"extra": "ignored"} for row in named]
    columns = {name: [row[name] for row in named] for name in reversed(FEATURES)} | {"extra": None}
    nan = [[float("nan") if value is None else value for value in row] for row in ROWS]
    mixed = [ROWS[0], named[1], nan[2]]
    for body in ({"rows": named}, {"rows": backwards}, {"columns": columns}, {"rows": nan}, {"rows": mixed}):
        assert labels(predictor, body) == expected


def test_infinities_truths_and_whole_numbers_are_numbers(predictor: httpx.Client) -> None:
    rows = [[float("inf"), float("-inf"), 1e308], [True, False, 3]]
    same = [[1e300, -1e300, 1e308], [1.0, 0.0, 3.0]]
    assert labels(predictor, {"rows": rows}) == labels(predictor, {"rows": same})


def test_scores_go_with_labels(predictor: httpx.Client) -> None:
    answer = post(predictor, {"rows": ROWS, "output": ["labels", "scores"]}).json()
    best = [CLASSES[int(np.argmax(row))] for row in answer["scores"]]
    assert best == answer["labels"]
    likely = post(predictor, {"rows": ROWS, "output": ["labels", "probabilities"]}).json()
    assert [len(row) for row in likely["probabilities"]] == [len(answer["classes"])] * len(ROWS)
    for label, row in zip(likely["labels"], likely["probabilities"], strict=True):
        assert sum(row) == pytest.approx(1.0)
        assert answer["classes"][row.index(max(row))] == label
    only = post(predictor, {"rows": ROWS, "output": ["scores"]}).json()
    assert "labels" not in only
    assert only["scores"] == answer["scores"]


def test_no_rows_give_no_labels(predictor: httpx.Client) -> None:
    assert labels(predictor, {"rows": []}) == []
    assert labels(predictor, {"columns": {name: [] for name in FEATURES}}) == []


BAD: dict[str, tuple[Any, list[str | int], str]] = {
    "missing feature": ({"rows": [ROWS[0], {"height": 1, "leaf": 2}]}, ["rows", 1], "'girth'"),
    "missing column": ({"columns": {"height": [1], "leaf": [2]}}, ["columns"], "'girth'"),
    "string in a row": ({"rows": [ROWS[0], [1, "x", 2]]}, ["rows", 1, 1], "row 1, column 'girth'"),
    "number as a string": ({"rows": [["1.5", 1, 2]]}, ["rows", 0, 0], "row 0, column 'height'"),
    "string in an object": ({"rows": [{"height": 1, "girth": 2, "leaf": "x"}]}, ["rows", 0, "leaf"], "'x'"),
    "string in a column": (
        {"columns": {"height": [1, 2], "girth": [1, "a"], "leaf": [0, 0]}},
        ["columns", "girth", 1],
        "row 1, column 'girth'",
    ),
    "list as a value": ({"rows": [[1, [2], 3]]}, ["rows", 0, 1], "[2]"),
    "object as a value": ({"rows": [[1, {}, 3]]}, ["rows", 0, 1], "{}"),
    "endless number": ({"rows": [[1, 10**400, 3]]}, ["rows", 0, 1], "too large"),
    "short row": ({"rows": [[1, 2]]}, ["rows", 0], "has 2 values, but the model has 3"),
    "long row": ({"rows": [[1, 2, 3, 4]]}, ["rows", 0], "has 4 values"),
    "row of nothing": ({"rows": [None]}, ["rows", 0], "None"),
    "ragged columns": (
        {"columns": {"height": [1], "girth": [1, 2], "leaf": [1]}},
        ["columns", "girth"],
        "has 2 values",
    ),
    "column of one value": ({"columns": {"height": 1, "girth": [1], "leaf": [1]}}, ["columns", "height"], "list"),
    "both forms": ({"rows": ROWS, "columns": {}}, ["rows"], "either"),
    "neither form": ({}, ["rows"], "either"),
    "unknown key": ({"row": ROWS}, ["row"], "did you mean 'rows'"),
    "unknown output": ({"rows": ROWS, "output": ["oracle"]}, ["output", 0], "'oracle'"),
    "no output": ({"rows": ROWS, "output": []}, ["output"], "at least 1"),
    "rows as text": ({"rows": "1,2,3"}, ["rows"], "list"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_has_its_place(predictor: httpx.Client, case: str) -> None:
    body, loc, words = BAD[case]
    answer = post(predictor, body)
    problem = checked_problem(answer)
    assert answer.status_code == 422
    assert problem["errors"][0]["loc"] == loc
    assert words in problem["errors"][0]["message"]


def test_many_mistakes_are_cut_short(predictor: httpx.Client) -> None:
    errors = checked_problem(post(predictor, {"rows": [["x", 1, 1]] * 40}))["errors"]
    assert len(errors) == 21
    assert "20 more" in errors[-1]["message"]


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_the_row_cap(predictor: httpx.Client, form: str) -> None:
    def body(n_rows: int) -> dict[str, Any]:
        return {"rows": [ROWS[0]] * n_rows} if form == "rows" else {"columns": {f: [1] * n_rows for f in FEATURES}}

    assert len(labels(predictor, body(CAP))) == CAP
    answer = post(predictor, body(CAP + 1))
    assert answer.status_code == 413
    assert str(CAP) in checked_problem(answer)["detail"]


def test_unknown_models(predictor: httpx.Client) -> None:
    for path in ("/v1/models/nobody/predict", "/v1/models/trees/versions/9/predict"):
        answer = post(predictor, {"rows": ROWS}, path)
        assert answer.status_code == 404
        checked_problem(answer)
