"""A job that goes on from a model: the same bytes as one that never stopped, and refusals in words."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from boost_core.errors import ConfigError
from service.cli_train import Arguments, run
from service.errors import ModelNotFound, RequestRefused
from service.registry import ModelRegistry
from service.requests import parse, prepare
from service.safe_json import encode
from service.warm_start import check_start, find_start
from tests.service.tables_of_data import request, write
from workers.model_file import model_sha256, read_model


@pytest.fixture
def root(tmp_path: Path) -> Path:
    columns = {"x": pa.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), "kind": pa.array(["a", "b", "a", "b", "a", "c"])}
    write(tmp_path / "rows.parquet", columns)
    return tmp_path


def body(rounds: int, **changes: Any) -> dict[str, Any]:
    tree = {"name": "adaboost_mm", "weak_learner": {"kind": "tree", "max_leaves": 2}}
    return request(data={"train": "rows.parquet", "label": "kind"}, algorithm=tree, rounds=rounds, **changes)


def train(root: Path, name: str, wanted: dict[str, Any]) -> str:
    job, out = root / f"{name}.json", root / f"{name}.model"
    job.write_bytes(encode(wanted))
    run(Arguments(job, out, 0, None, root), as_json=True)
    return model_sha256(read_model(out))


def test_the_command_line_goes_on_from_a_file(root: Path) -> None:
    whole = train(root, "whole", body(5))
    train(root, "some", body(2))
    more = train(root, "more", body(5, warm_start={"file": str(root / "some.model")}))
    assert more == whole


def test_other_settings_are_refused(root: Path) -> None:
    train(root, "some", body(2))
    plan, config = prepare(parse(body(5, seed=3)), root)
    with pytest.raises(ConfigError, match="seed"):
        check_start(read_model(root / "some.model"), plan, config)


@pytest.mark.parametrize("named", [{"file": "/etc/passwd"}, {"model": "m", "file": "x"}, {}, {"model": "m"}])
def test_a_server_goes_on_from_registered_models_only(named: dict[str, str]) -> None:
    class Nothing(ModelRegistry):
        def __init__(self) -> None:
            """No models."""

        def load(self, name: str, number: int | None) -> Any:
            raise ModelNotFound(f"there is no model {name!r}")

    with pytest.raises(RequestRefused) as refused:
        find_start(parse(body(5, warm_start=named)), Nothing())
    assert [loc for loc, _ in refused.value.problems] == [("warm_start",)]
