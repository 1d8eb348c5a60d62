"""Every way of asking wrongly gets a 4xx that says where and what, always valid JSON, never a trace."""

import json
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.service.tables_of_data import FEATURES, request, write, write_trees

TREES: dict[str, Any] = {"train": "trees.parquet", "label": "kind"}
STUMP = {"name": "adaboost_mh", "weak_learner": {"kind": "stump"}}


@pytest.fixture(scope="module")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bad") / "data"
    write_trees(root / "trees.parquet")
    numbers = pa.array([1.0, 2.0, 3.0])
    write(root / "one_class.parquet", {"x": numbers, "kind": pa.array(["a", "a", "a"])})
    write(root / "no_rows.parquet", {"x": numbers[:0], "kind": pa.array([], pa.string())})
    write(root / "nan_label.parquet", {"x": numbers, "kind": pa.array([1.0, float("nan"), 2.0])})
    write(root / "null_label.parquet", {"x": numbers, "kind": pa.array(["a", None, "b"])})
    write(root / "sets.parquet", {"x": numbers, "y": numbers, "a": pa.array([0, 1, 1]), "b": pa.array([1, 0, 1])})
    weights = {"w": pa.array([1.0, -1.0, None]), "zero": pa.array([0, 0, 0]), "text": pa.array(["1", "2", "3"])}
    write(root / "weights.parquet", {"x": numbers, "kind": pa.array(["a", "b", "a"])} | weights)
    features = dict.fromkeys(FEATURES, numbers)
    write(root / "other.parquet", features | {"kind": pa.array(["ash", "birch", "oak"])})
    (root / "text.parquet").write_text("not parquet")
    write_trees(root.parent / "outside.parquet")
    (root / "link.parquet").symlink_to(root.parent / "outside.parquet")
    return root


def data(**changes: Any) -> dict[str, Any]:
    return {"data": TREES | changes}


def algorithm(**changes: Any) -> dict[str, Any]:
    return {"algorithm": STUMP | changes}


BAD_REQUESTS: dict[str, tuple[dict[str, Any], list[str | int], str]] = {
    "no such file": (data(train="gone.parquet"), ["data", "train"], "gone.parquet"),
    "no such file in a list": (data(train=["trees.parquet", "gone.parquet"]), ["data", "train", 1], "gone.parquet"),
    "a file twice": (data(train=["trees.parquet", "trees.parquet"]), ["data", "train"], "trees.parquet"),
    "up and out": (data(train="../../etc/passwd"), ["data", "train"], "outside the data root"),
    "sideways out": (data(train="../outside.parquet"), ["data", "train"], "outside the data root"),
    "link out": (data(train="link.parquet"), ["data", "train"], "outside the data root"),
    "proc": (data(train="//proc/self/root/etc/passwd"), ["data", "train"], "outside the data root"),
    "http": (data(train="http://169.254.169.254/x"), ["data", "train"], "http"),
    "null byte": (data(train="a\0b"), ["data", "train"], "not a path"),
    "endless name": (data(train="a" * 5000), ["data", "train"], "aaa"),
    "empty path": (data(train=""), ["data", "train"], "path"),
    "no paths": (data(train=[]), ["data", "train"], "path"),
    "not parquet": (data(train="text.parquet"), ["data", "train"], "text.parquet"),
    "zero rows": (data(train="no_rows.parquet"), ["data", "train"], "0 rows"),
    "unknown label": (data(label="species"), ["data", "label"], "species"),
    "one class": (data(train="one_class.parquet"), ["data", "label"], "one class"),
    "NaN label": (data(train="nan_label.parquet"), ["data", "label"], "1 missing"),
    "null label": (data(train="null_label.parquet"), ["data", "label"], "1 missing"),
    "unknown feature": (data(features=["age"]), ["data", "features"], "age"),
    "feature twice": (data(features=["height", "height"]), ["data", "features"], "height"),
    "no features": (data(features=[]), ["data", "features"], "at least 1"),
    "unknown exclusion": (data(exclude=["age"]), ["data", "exclude"], "age"),
    "classes that training lacks": (data(valid="other.parquet"), ["data", "valid"], "'oak'"),
    "validation without the features": (data(valid="null_label.parquet"), ["data", "valid"], "'height'"),
    "unknown label columns": (data(label=["a", "kind"]), ["data", "label"], "no column 'a'"),
    "label columns of text": (data(label=["kind", "leaf"]), ["data", "label"], "'kind' (string)"),
    "label columns of other numbers": (data(train="sets.parquet", label=["a", "x"]), ["data", "label"], "than 0 and 1"),
    "label column twice": (data(label=["leaf", "leaf"]), ["data", "label"], "named twice: leaf"),
    "list column of text": (data(label={"list": "kind"}), ["data", "label"], "type string"),
    "list column by another name": (data(label={"lists": "kind"}), ["data", "label"], '{"list": column}'),
    "a label as feature": (
        data(train="sets.parquet", label=["a", "b"], features=["x", "a"]),
        ["data", "features"],
        "'a'",
    ),
    "several labels for one": (
        {"data": {"train": "sets.parquet", "label": ["a", "b"]}, "algorithm": {"name": "samme"}},
        ["algorithm", "name"],
        "adaboost_mh with hamming_tree",
    ),
    "valid fraction": (data(valid={"fraction": 0.2}), ["data", "valid"], "not supported yet"),
    "valid column": (data(valid={"column": "fold"}), ["data", "valid"], "not supported yet"),
    "unknown weight": (data(weight="w"), ["data", "weight"], "no column 'w'"),
    "weight of text": (data(train="weights.parquet", weight="text"), ["data", "weight"], "type string"),
    "weights that are none": (
        data(train="weights.parquet", weight="w", exclude=["text"]),
        ["data", "weight"],
        "row 1 of 'weights.parquet'",
    ),
    "weights of 0 only": (
        data(train="weights.parquet", weight="zero", exclude=["text"]),
        ["data", "weight"],
        "none is left",
    ),
    "label as weight": (data(weight="kind"), ["data", "weight"], "cannot be the weight"),
    "categorical": (data(categorical=["kind"]), ["data", "categorical"], "auto"),
    "unknown data key": (data(lable="kind"), ["data", "lable"], "did you mean 'label'"),
    "stopping without validation rows": ({"stopping": {"metric": "error"}}, ["stopping"], "data.valid"),
    "stopping without patience": ({"stopping": {"patience": 0}}, ["stopping", "patience"], "0"),
    "stopping on what is not measured": ({"stopping": {"metric": "auc"}}, ["stopping", "metric"], "'auc'"),
    "unknown algorithm": (algorithm(name="adaboost_xy"), ["algorithm", "name"], "adaboost_xy"),
    "unknown parameter": (algorithm(speed=3), ["algorithm", "speed"], "unknown parameter 'speed'"),
    "unknown learner": (algorithm(weak_learner={"kind": "oak"}), ["algorithm", "weak_learner", "kind"], "oak"),
    "unknown learner parameter": (
        algorithm(weak_learner={"kind": "hamming_tree", "leafs": 3}),
        ["algorithm", "weak_learner", "leafs"],
        "leafs",
    ),
    "too few leaves": (
        algorithm(weak_learner={"kind": "hamming_tree", "max_leaves": 1}),
        ["algorithm", "weak_learner", "max_leaves"],
        "at least",
    ),
    "shrinkage": (algorithm(shrinkage=1.5), ["algorithm", "shrinkage"], "at most"),
    "shrinkage of planned steps": (
        algorithm(name="os_exponential", weak_learner={"kind": "tree"}, shrinkage=0.5),
        ["algorithm", "shrinkage"],
        "unknown parameter",
    ),
    "baseline of other classes": (
        algorithm(name="os_exponential", weak_learner={"kind": "tree"}, baseline=[0.5, 0.5]),
        ["algorithm", "baseline"],
        "there are 3 classes, got 2 numbers",
    ),
    "too long a game": (
        algorithm(name="os_zero_one", weak_learner={"kind": "tree"}, loss="hinge") | {"rounds": 286},
        ["algorithm", "loss"],
        "at most 285 rounds, got rounds 286",
    ),
    "conditions of votes": ({"conditions": True}, ["conditions"], "they go with the weak learner 'tree'"),
    "row fraction": (algorithm(row_fraction=0), ["algorithm", "row_fraction"], "at least"),
    "class weight": (algorithm(class_weight="even"), ["algorithm", "class_weight"], "balanced"),
    "class weight of no class": (algorithm(class_weight={"elm": 2}), ["algorithm", "class_weight", "elm"], "'elm'"),
    "binary on three classes": ({"algorithm": {"name": "adaboost"}}, ["algorithm", "name"], "class"),
    "rounds 0": ({"rounds": 0}, ["rounds"], "greater than or equal to 1"),
    "rounds as text": ({"rounds": "5"}, ["rounds"], "'5'"),
    "rounds as a fraction": ({"rounds": 5.5}, ["rounds"], "5.5"),
    "rounds without end": ({"rounds": float("inf")}, ["rounds"], "inf"),
    "rounds not a number": ({"rounds": float("nan")}, ["rounds"], "nan"),
    "rounds as a truth": ({"rounds": True}, ["rounds"], "True"),
    "too many bins": ({"max_bins": 256}, ["max_bins"], "256"),
    "endless seed": ({"seed": 10**30}, ["seed"], "9223372036854775807"),
    "negative workers": ({"resources": {"workers": -1}}, ["resources", "workers"], "-1"),
    "workers without a cluster": ({"resources": {"workers": 2}}, ["resources", "workers"], "no cluster"),
    "no threads": ({"resources": {"workers": 0, "threads": 0}}, ["resources", "threads"], "0"),
    "bad name": ({"name": "../x"}, ["name"], "'../x'"),
    "unknown key": ({"round": 5}, ["round"], "did you mean 'rounds'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_a_bad_request_names_its_place(shared_client: httpx.Client, case: str) -> None:
    changes, loc, words = BAD_REQUESTS[case]
    body = json.dumps(request() | changes)
    answer = shared_client.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    problem = checked_problem(answer)
    assert answer.status_code == 422, problem
    [error] = problem["errors"]
    assert error["loc"] == loc
    assert words in error["message"]


def checked_problem(answer: httpx.Response) -> dict[str, Any]:
    """The problem details of an answer, which are valid in every respect."""
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Traceback" not in answer.text

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    problem: dict[str, Any] = json.loads(answer.text, parse_constant=refuse)
    assert set(problem) == {"type", "title", "status", "detail", "errors"}
    assert problem["status"] == answer.status_code
    return problem


def test_every_mistake_is_named_at_once(shared_client: httpx.Client) -> None:
    answer = shared_client.post("/v1/jobs", json={"rounds": 0, "nmae": "x", "algorithm": {}})
    problem = checked_problem(answer)
    assert [error["loc"] for error in problem["errors"]] == [["data"], ["algorithm", "name"], ["rounds"], ["nmae"]]
    assert problem["errors"][0]["message"] == "is required"


@pytest.mark.parametrize("body", [b"", b"{", b"[1,]", b"\xff", b'"\\ud800"', b"[" * 100_000, b"{'a': 1}"])
def test_a_body_that_is_not_json(shared_client: httpx.Client, body: bytes) -> None:
    answer = shared_client.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, checked_problem(answer)["title"]) == (400, "The body is not JSON")


@pytest.mark.parametrize("body", ["null", "[]", "3", '"text"', "NaN"])
def test_a_body_that_is_no_object(shared_client: httpx.Client, body: str) -> None:
    answer = shared_client.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "valid dictionary" in checked_problem(answer)["detail"]


def test_another_media_type(shared_client: httpx.Client) -> None:
    answer = shared_client.post("/v1/jobs", data={"rounds": "5"})
    assert answer.status_code == 415
    assert "application/json" in checked_problem(answer)["detail"]


def test_unknown_addresses(shared_client: httpx.Client) -> None:
    for path in ("/v2", "/v1/jobs/nowhere", "/v1/models/nobody", "/v1/models/nobody/versions/1"):
        answer = shared_client.get(path)
        assert answer.status_code == 404
        checked_problem(answer)
    assert shared_client.get("/v1/jobs/no%ff%00where").status_code == 404


def test_another_method(shared_client: httpx.Client) -> None:
    answer = shared_client.put("/v1/jobs", json={})
    assert answer.status_code == 405
    assert "POST" in answer.headers["allow"] or "GET" in answer.headers["allow"]
    checked_problem(answer)


@pytest.mark.parametrize("number", ["0", "-1", "x", "99999999999999999999"])
def test_version_numbers(shared_client: httpx.Client, number: str) -> None:
    answer = shared_client.get(f"/v1/models/trees/versions/{number}")
    assert answer.status_code == 422
    assert checked_problem(answer)["errors"][0]["loc"] == ["path", "version"]


def test_nothing_was_queued(shared_client: httpx.Client) -> None:
    # The last of this module: none of the refused requests above left a job.
    assert shared_client.get("/v1/jobs").json()["jobs"] == []
