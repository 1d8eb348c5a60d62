"""The command line as a user runs it: one JSON object on standard output, and the exit codes."""

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.service.live_server import commanding
from tests.service.polling import wait_until
from tests.service.tables_of_data import CLASSES, FEATURES, request

COMMAND = [sys.executable, "-m", "service.cli"]
PATIENCE = 240  # seconds of a command: where both processors compile other things, one that compiles takes two minutes


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])}
    options: Any = {"capture_output": True, "text": True, "cwd": cwd, "timeout": PATIENCE}
    return subprocess.run(command, check=False, env=environment, **options)


def one_object(done: subprocess.CompletedProcess[str], code: int = 0) -> dict[str, Any]:
    """The one JSON object on standard output."""
    assert done.returncode == code, done.stderr
    assert done.stdout.count("\n") == 1
    answer: dict[str, Any] = json.loads(done.stdout)
    assert "Traceback" not in done.stderr
    return answer


def error_of(done: subprocess.CompletedProcess[str], code: int) -> dict[str, Any]:
    """The problem on standard output, told on standard error too."""
    answer = one_object(done, code)
    assert set(answer) == {"error"}
    error: dict[str, Any] = answer["error"]
    assert done.stderr.startswith("edgewise: ")
    return error


def write_job(folder: Path, **changes: object) -> Path:
    path = folder / "job.json"
    path.write_text(json.dumps(request(**changes)))
    return path


@pytest.fixture(scope="module")
def model(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model file."""
    folder = tmp_path_factory.mktemp("cli")
    done = run("train", write_job(folder), "--out", folder / "model", "--data-root", data_root)
    assert done.returncode == 0, done.stderr
    assert "loss" in done.stdout
    return folder / "model"


def test_train_answers_with_its_figures(model: Path, data_root: Path, tmp_path: Path) -> None:
    data = {"train": "trees.parquet", "valid": "trees.test.parquet", "label": "kind"}
    job = write_job(tmp_path, data=data)
    done = run("train", job, "--out", tmp_path / "m", "--data-root", data_root, "--json")
    answer = one_object(done)
    assert set(answer) >= {
        "model_sha256", "workers", "stop_reason", "rounds", "rounds_run", "best_round", "train_error", "valid_error",
        "strict_train_error", "edge_last", "loss", "bound", "bound_holds", "seconds", "peak_memory_bytes", "classes",
        "rows",
    }  # fmt: skip
    assert (answer["workers"], answer["rounds"], answer["rows"], answer["classes"]) == (0, 5, 90, 3)
    phases = {"read", "bin", "compile", "train", "validate", "total", "per_round"}
    assert set(answer["seconds"]) >= phases
    assert 0 <= answer["valid_error"] <= 1
    # The validation rows change nothing in the trees, but the figures are part of the model.
    again = one_object(run("train", job, "--out", tmp_path / "m2", "--data-root", data_root, "--json"))
    assert again["model_sha256"] == answer["model_sha256"]
    assert (tmp_path / "m").read_bytes() == (tmp_path / "m2").read_bytes()


def test_a_profile_shows_where_the_time_went(data_root: Path, tmp_path: Path) -> None:
    done = run("train", write_job(tmp_path), "--out", tmp_path / "m", "--data-root", data_root, "--profile")
    assert done.returncode == 0, done.stderr
    for stage in ("reading", "compilation", "histograms", "weights, gain matrix", "outside kernels"):
        assert stage in done.stdout
    done = run("train", write_job(tmp_path), "--out", tmp_path / "m", "--data-root", data_root, "--profile", "--json")
    rows = one_object(done)["profile"]["stages"]
    assert [row["stage"] for row in rows][:4] == ["waiting", "read", "bin", "compile"]
    assert "histograms" in done.stderr
    assert "compiling kernels" in done.stderr


def test_data_are_relative_to_the_current_folder(data_root: Path, tmp_path: Path) -> None:
    done = run("train", write_job(tmp_path), "--out", tmp_path / "m", "--json", cwd=data_root)
    assert one_object(done)["rounds"] == 5


def test_show_tells_the_metadata_and_the_rounds(model: Path) -> None:
    answer = one_object(run("show", model, "--json"))
    assert (answer["label"], answer["classes"]) == ("kind", list(CLASSES))
    assert [feature["name"] for feature in answer["features"]] == list(FEATURES)
    assert answer["config"]["rounds"] == 5
    assert [entry["round"] for entry in answer["rounds"]] == [1, 2, 3, 4, 5]
    assert set(answer["rounds"][0]) == {
        "round", "edge", "alpha", "ln_loss", "ln_bound", "train_error", "valid_error"
    }  # fmt: skip
    assert all(entry["alpha"] > 0 and entry["valid_error"] is None for entry in answer["rounds"])
    text = run("show", model)
    assert text.returncode == 0
    assert answer["model_sha256"] in text.stdout


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_predict_writes_labels_and_tells_the_error(model: Path, data_root: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    arguments = ("--out", out, "--data-root", data_root, "--label", "kind", "--json")
    answer = one_object(run("predict", model, "trees.test.parquet", *arguments))
    table = pq.read_table(out) if out.suffix == ".parquet" else pyarrow.csv.read_csv(out)
    predicted = table.column("prediction").to_pylist()
    truth = pq.read_table(data_root / "trees.test.parquet").column("kind").to_pylist()
    wrong = sum(a != b for a, b in zip(predicted, truth, strict=True))
    assert set(answer) == {"rows", "error", "seconds"}
    assert (answer["rows"], answer["error"]) == (45, wrong / 45)


def test_predict_without_the_label_has_no_error(model: Path, data_root: Path) -> None:
    arguments = ("predict", model, "trees.test.parquet", "--data-root", data_root, "--label", "species")
    answer = one_object(run(*arguments, "--json"))
    assert (answer["rows"], answer["error"]) == (45, None)
    assert "45 rows" in (text := run(*arguments).stdout)
    assert "no column 'species'" in text


def test_predict_compares_with_the_models_label(model: Path, data_root: Path) -> None:
    arguments = ("predict", model, "trees.test.parquet", "--data-root", data_root, "--json")
    error = one_object(run(*arguments))["error"]
    assert error is not None
    assert error == one_object(run(*arguments, "--label", "kind"))["error"]


def test_algorithms_are_listed() -> None:
    names = {item["name"] for item in one_object(run("algorithms", "--json"))["algorithms"]}
    assert "adaboost_mh" in names
    assert "adaboost_mh" in run("algorithms").stdout


@pytest.mark.parametrize(
    ("changes", "code", "loc"),
    [
        ({"rounds": 0}, 2, ["rounds"]),
        ({"colour": 1}, 2, ["colour"]),
        ({"stopping": {"patience": 3}}, 2, ["stopping"]),
        ({"algorithm": {"name": "oak"}}, 2, ["algorithm", "name"]),
        ({"data": {"train": "gone.parquet", "label": "kind"}}, 3, ["data", "train"]),
        ({"data": {"train": "../../etc/passwd", "label": "kind"}}, 3, ["data", "train"]),
        ({"data": {"train": "trees.parquet", "label": "species"}}, 3, ["data", "label"]),
    ],
)
def test_a_wrong_request_is_told_as_over_http(
    data_root: Path, tmp_path: Path, changes: dict[str, Any], code: int, loc: list[str]
) -> None:
    job = write_job(tmp_path, **changes)
    done = run("train", job, "--out", tmp_path / "m", "--data-root", data_root, "--json")
    error = error_of(done, code)
    assert error["errors"][0]["loc"] == loc
    assert error["errors"][0]["message"] in done.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("content", [None, "", "{", "[1]", "not json"])
def test_a_job_file_that_is_none(tmp_path: Path, content: str | None) -> None:
    job = tmp_path / "job.json"
    if content is not None:
        job.write_text(content)
    error = error_of(run("train", job, "--out", tmp_path / "m", "--json"), 2)
    assert "job.json" in error["detail"] or "valid dictionary" in error["detail"]


def test_an_output_that_cannot_be_written_is_told_before_training(data_root: Path, tmp_path: Path) -> None:
    for out in (tmp_path, tmp_path / "no" / "folder"):
        error = error_of(run("train", write_job(tmp_path), "--out", out, "--data-root", data_root, "--json"), 2)
        assert error["errors"][0]["loc"] == ["out"]


@pytest.mark.parametrize("command", ["show", "predict"])
def test_a_file_that_is_no_model(data_root: Path, tmp_path: Path, command: str) -> None:
    data = ["trees.parquet", "--data-root", data_root] if command == "predict" else []
    for path in (tmp_path / "gone", data_root / "trees.parquet"):
        error = error_of(run(command, path, *data, "--json"), 2)
        assert path.name in error["detail"]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["train", "x.json"], ["train", "x.json", "--out", "m", "--workers", "-1"], ["show"]]
)
def test_a_command_line_that_cannot_be_read(arguments: list[str]) -> None:
    error_of(run(*arguments, "--json"), 2)
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--help" in done.stderr


def test_clusters_that_are_not_there(data_root: Path, tmp_path: Path, unused_tcp_address: str) -> None:
    job = write_job(tmp_path)
    out = ("--out", tmp_path / "m", "--data-root", data_root, "--json")
    assert "TLS" in error_of(run("train", job, "--cluster", "tls://a:1", *out), 2)["detail"]
    assert unused_tcp_address in error_of(run("train", job, "--cluster", unused_tcp_address, *out), 4)["detail"]


def test_an_interrupted_training(data_root: Path, tmp_path: Path) -> None:
    job = write_job(tmp_path, rounds=1_000_000)
    log = tmp_path / "log"
    flags = ["--out", str(tmp_path / "m"), "--data-root", str(data_root), "--json"]
    with commanding(log, "train", str(job), *flags) as process:
        wait_until(log.read_text, lambda text: "training ..." in text)
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in json.loads(stdout)["error"]["detail"]
    assert not (tmp_path / "m").exists()


def test_serve_refuses_a_host_that_others_reach(tmp_path: Path) -> None:
    error = error_of(run("serve", "--host", "0.0.0.0", "--port", "0", "--state-dir", tmp_path / "state", "--json"), 2)
    assert "API keys" in error["detail"]


def test_serve_refuses_a_port_that_is_taken(tmp_path: Path, unused_tcp_address: str) -> None:
    port = unused_tcp_address.rpartition(":")[2]
    error = error_of(run("serve", "--port", port, "--state-dir", tmp_path / "state", "--json"), 2)
    assert port in error["detail"]


def test_the_command_answers_at_once() -> None:
    # Two interpreter starts; the import itself must stay under 0.4 s.
    measure = "import time; t = time.perf_counter(); import service.cli; print(time.perf_counter() - t)"
    seconds = min(
        float(subprocess.run([sys.executable, "-c", measure], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )
    assert seconds < 0.4
    heavy = "import sys, service.cli; print({'numba', 'pyarrow', 'distributed', 'fastapi'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_members_of_a_cluster_start_without_database_and_arrow() -> None:
    start = "import sys, service.cli_roles as roles; roles.cluster_settings({})"
    heavy = f"{start}; print({{'sqlalchemy', 'pyarrow', 'numba', 'fastapi'}} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_the_release_is_told() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"edgewise {version('edgewise')}\n")


def test_compile_says_for_what() -> None:
    answer = one_object(run("compile", "--classes", 3, "--json"))
    assert (answer["classes"], answer["algorithms"]) == ([3], ["adaboost_mh"])
    assert answer["seconds"] > 0


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="nothing is compiled")
def test_kernels_in_a_folder_that_was_shipped_are_not_compiled_again(tmp_path: Path) -> None:
    wanted = ("compile", "--classes", 2, "--algorithm", "adaboost:stump", "--json", "--cache")
    made = one_object(run(*wanted, tmp_path / "made"))
    assert made["compiled"] > 0
    shutil.copytree(tmp_path / "made", tmp_path / "shipped")
    shutil.rmtree(tmp_path / "made")
    again = one_object(run(*wanted, tmp_path / "shipped"))
    assert (again["compiled"], again["algorithms"]) == (0, ["adaboost:stump"])
