"""docs/data.md and docs/model-file.md say what the code does."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from boost_core.model import FORMAT_VERSION, RoundFigures
from tests.builders import ROOT, arrays_of
from tests.golden.make import GOLDEN
from tests.workers.parquet_tables import plan_of, write
from workers.errors import DataError
from workers.model_file import CONDITIONS, DTYPES, META, METADATA_ARRAYS, NODE_COLUMNS, TREE_COLUMNS, read_model

DATA = (ROOT / "docs/data.md").read_text()
MODEL_FILE = (ROOT / "docs/model-file.md").read_text()

TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.null()),
    *(pa.decimal128(10, 2), pa.date32(), pa.timestamp("us"), pa.duration("s"), pa.dictionary(pa.int32(), pa.string())),
    *(pa.list_(pa.field("element", pa.int64())), pa.struct({"a": pa.int64()})),
]


def rows_of_tables(text: str) -> list[list[str]]:
    """Cells of every table row that has code in its first cell."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


ANSWERS = {
    name: {"feature": feature == "yes", "label": label == "yes"}
    for names, feature, label in (row for row in rows_of_tables(DATA) if len(row) == 3)
    for name in code(names)
}


def test_the_table_names_every_type_once():
    assert sorted(ANSWERS) == sorted(str(type_) for type_ in TYPES)


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("place", ["feature", "label"])
def test_the_table_of_types_is_true(tmp_path: Path, type_: pa.DataType, place: str):
    columns: dict[str, Any] = {"x": pa.array([1.0, 2.0]), "label": pa.array([0, 1])}
    columns["x" if place == "feature" else "label"] = pa.nulls(2, type_)
    path = write(tmp_path / "t.parquet", columns)
    if ANSWERS[str(type_)][place] and place == "feature":
        assert plan_of(path).features[0].type == str(type_)
        return
    with pytest.raises(DataError) as caught:
        plan_of(path)
    only_missing = "2 missing label(s)" in caught.value.message
    assert only_missing == ANSWERS[str(type_)][place]


def test_every_column_of_the_file_is_described():
    columns, arrays = MODEL_FILE.split("The schema's metadata")
    described = [name for row in rows_of_tables(columns) for name in code(row[0]) if len(row) == 3]
    with pa.ipc.open_file(GOLDEN) as reader:
        assert described == reader.schema.names
        in_metadata = [name.decode() for name in reader.schema.metadata]
    assert described == [*NODE_COLUMNS, "payload", *TREE_COLUMNS]
    described = [name for row in rows_of_tables(arrays) for name in code(row[0]) if len(row) == 3]
    assert described == [*METADATA_ARRAYS, CONDITIONS]  # the golden model's job did not ask for conditions
    assert sorted(in_metadata) == sorted([META.decode(), *METADATA_ARRAYS])


def test_every_array_is_stored_and_hashed():
    figures = {field.name for field in fields(RoundFigures)}
    assert set(DTYPES) == {*arrays_of(read_model(GOLDEN).forest), *figures, "thresholds", "threshold_start"}


def test_every_key_of_the_json_is_described():
    described = {name for row in rows_of_tables(MODEL_FILE) if len(row) == 2 for name in code(row[0])}
    assert described == {*read_model(GOLDEN).metadata(), "sha256"}
    assert f"Format version: {FORMAT_VERSION}." in MODEL_FILE


def test_the_arrays_are_hashed_in_the_order_described():
    [order] = re.findall(r"in this order: (.*?)\. So it", MODEL_FILE, re.DOTALL)
    assert code(order) == [*DTYPES, CONDITIONS]


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "model.edgewise").write_bytes(GOLDEN.read_bytes())
    monkeypatch.chdir(tmp_path)
    [example] = re.findall(r"```python\n(.*?)```", MODEL_FILE, re.DOTALL)
    exec(compile(example, "docs/model-file.md", "exec"), {})
    assert capsys.readouterr().out.startswith("['ash', 'birch', 'cedar'] 10 trees; the first asks for [0, ")
