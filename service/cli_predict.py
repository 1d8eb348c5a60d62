"""`edgewise predict`."""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from service.cli_output import reporting
from service.errors import RequestRefused
from workers.data_root import resolve_paths
from workers.model_file import read_model
from workers.scoring import TablePrediction, predict_table

COLUMN = "prediction"
KINDS = (".parquet", ".csv")


@dataclass(frozen=True)
class Arguments:
    """What the command line says."""

    model: Path
    data: str
    out: Path | None
    label: str | None
    data_root: Path


def run(arguments: Arguments, *, as_json: bool) -> None:
    """Predict every row; the answer is the count and, where the label is known, the error."""
    with reporting(as_json) as output:
        _check_out(arguments.out)
        model = read_model(arguments.model)
        paths = resolve_paths(arguments.data_root, arguments.data, ("data",))
        found = predict_table(model, paths, arguments.label)
        label = arguments.label or (model.label if isinstance(model.label, str) else ", ".join(model.label))
        if arguments.out is not None:
            _write(arguments.out, found)
        answer = {"rows": found.rows, "error": found.error, "seconds": found.seconds}
        output.answer(answer, _text(found, label))


def _check_out(out: Path | None) -> None:
    if out is not None and out.suffix not in KINDS:
        raise RequestRefused([(("out",), f"{out} must end in {' or '.join(KINDS)}")])


def _write(out: Path, found: TablePrediction) -> None:
    labels = found.labels
    if out.suffix == ".csv":
        # a cell of several labels is a list in JSON
        labels = tuple(json.dumps(label, ensure_ascii=False) if isinstance(label, tuple) else label for label in labels)
    table = pa.table({COLUMN: pa.array(labels)})
    try:
        if out.suffix == ".csv":
            pyarrow.csv.write_csv(table, out)
        else:
            pyarrow.parquet.write_table(table, out)
    except OSError as error:
        raise RequestRefused([(("out",), f"cannot write {out}: {error}")]) from None


def _text(found: TablePrediction, label: str) -> str:
    error = f"the data have no column {label!r} to compare with" if found.error is None else f"error {found.error:.6f}"
    return f"{found.rows} rows in {found.seconds:.3f} s; {error}"
