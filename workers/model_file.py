"""The model file: one Arrow IPC file, a row a weak learner, everything else in the schema's metadata.

    row t          nodes (feature, kind, bin, threshold, missing left, left, right) and votes as lists, alpha, figures
    metadata       b"edgewise": canonical JSON (version, config, features, classes, fingerprint, sha256)
                   b"thresholds", b"threshold_start": little-endian arrays

The sha256 is taken over the canonical JSON and the arrays' little-endian bytes in the order declared here, so it does
not depend on the Arrow version that wrote the file.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from boost_core.config import TrainingConfig
from boost_core.model import FORMAT_VERSION, Feature, Forest, Model, RoundFigures
from workers.errors import ModelFileError
from workers.model_check import check_structure

META, THRESHOLDS, THRESHOLD_START = b"edgewise", b"thresholds", b"threshold_start"
NODE_COLUMNS = (
    "node_feature", "node_kind", "node_bin", "node_threshold", "node_missing_left", "node_left", "node_right",
)  # fmt: skip
FIGURE_COLUMNS = tuple(field.name for field in fields(RoundFigures))
DTYPES: dict[str, str] = {
    "node_start": "<i8", "leaf_start": "<i8", "node_feature": "<i4", "node_kind": "i1", "node_bin": "<i4",
    "node_threshold": "<f8", "node_missing_left": "?", "node_left": "<i4", "node_right": "<i4", "leaf_votes": "i1",
    "alpha": "<i8",
}  # fmt: skip
# What strange content makes the readers of JSON and Arrow raise.
NONSENSE = (
    pa.ArrowException, ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError,
)  # fmt: skip


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys and no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _arrays(model: Model) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array of a model in the declared order, little-endian."""
    yield "thresholds", model.thresholds.astype("<f8")
    yield "threshold_start", model.threshold_start.astype("<i8")
    for name, dtype in DTYPES.items():
        yield name, getattr(model.forest, name).astype(dtype)
    for name in FIGURE_COLUMNS:
        yield name, getattr(model.figures, name).astype("<f8")


def model_sha256(model: Model) -> str:
    """The model's identity: equal models have equal hashes wherever they were trained."""
    digest = hashlib.sha256(canonical_json(model.metadata()))
    for name, array in _arrays(model):
        digest.update(f"{name}{list(array.shape)}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def to_bytes(model: Model) -> bytes:
    """The content of the model's file."""
    forest = model.forest
    columns: dict[str, pa.Array] = {
        name: _lists(getattr(forest, name).astype(DTYPES[name]), forest.node_start) for name in NODE_COLUMNS
    }
    n_columns = forest.leaf_votes.shape[1]
    columns["leaf_votes"] = _lists(forest.leaf_votes.reshape(-1), forest.leaf_start * n_columns)
    columns["alpha"] = pa.array(forest.alpha)
    columns |= {name: pa.array(getattr(model.figures, name)) for name in FIGURE_COLUMNS}
    meta = {**model.metadata(), "n_columns": n_columns, "sha256": model_sha256(model)}
    metadata = {
        META: canonical_json(meta),
        THRESHOLDS: model.thresholds.astype("<f8").tobytes(),
        THRESHOLD_START: model.threshold_start.astype("<i8").tobytes(),
    }
    table = pa.table(columns).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _lists(values: NDArray[Any], starts: NDArray[np.int64]) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array(starts), pa.array(values))


def write_model(path: Path, model: Model) -> str:
    """Write a model so that the file is either whole or not there, also after a crash; returns its sha256."""
    path = Path(path)
    content = to_bytes(model)
    temporary = path.with_name(f".edgewise-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:  # not tempfile: that hides the file from other users whatever the umask
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)
    return model_sha256(model)


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_model(path: Path) -> Model:
    """Errors: ModelFileError if the file is missing, not a model, damaged, or of another format version."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"model file {str(path)!r} cannot be read: {error.strerror}") from error
    return from_bytes(content, str(path))


def from_bytes(content: bytes, name: str = "model") -> Model:
    """The inverse of `to_bytes`; `name` is for messages. Errors: ModelFileError."""
    try:
        with pa.ipc.open_file(pa.BufferReader(content)) as reader:
            table = reader.read_all()
        table.validate(full=True)  # Arrow ends the process, without an exception, on offsets that lead nowhere
        meta = _metadata(table)
    except (OSError, *NONSENSE) as error:
        raise ModelFileError(f"{name!r} is not a model file") from error
    version = meta.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(f"{name!r} has model format {version!r}; this release reads format {FORMAT_VERSION}")
    try:
        model = _assemble(table, meta)
        check_structure(model)
        damaged = model_sha256(model) != meta["sha256"]
    except NONSENSE as error:
        raise ModelFileError(f"{name!r} is a damaged model file: {error}") from error
    if damaged:
        raise ModelFileError(f"{name!r} is a damaged model file: its content does not match its sha256")
    return model


def _metadata(table: pa.Table) -> dict[str, Any]:
    meta = json.loads((table.schema.metadata or {})[META])
    if not isinstance(meta, dict):
        raise TypeError(f"expected a JSON object, got {meta!r}")
    return meta


def _assemble(table: pa.Table, meta: dict[str, Any]) -> Model:
    arrays = {name: _flat(table, name) for name in NODE_COLUMNS}
    n_columns = int(meta["n_columns"])
    votes = _flat(table, "leaf_votes").reshape(-1, n_columns)
    forest = Forest(
        node_start=_starts(table, "node_feature"),
        leaf_start=_starts(table, "leaf_votes") // n_columns,
        leaf_votes=votes,
        alpha=_own(table, "alpha", DTYPES["alpha"]),
        **arrays,
    )
    return Model(
        config=TrainingConfig.from_dict(meta["config"]),
        features=tuple(Feature(**feature) for feature in meta["features"]),
        classes=tuple(meta["classes"]),
        thresholds=np.frombuffer(table.schema.metadata[THRESHOLDS], "<f8").copy(),
        threshold_start=np.frombuffer(table.schema.metadata[THRESHOLD_START], "<i8").copy(),
        forest=forest,
        figures=RoundFigures(**{name: _own(table, name, "<f8") for name in FIGURE_COLUMNS}),
        fingerprint=int(meta["fingerprint"], 16),
        n_rows=meta["n_rows"],
    )


def _own(table: pa.Table, name: str, dtype: str) -> NDArray[Any]:
    """A column as an array of its own. Arrow's are read-only, and kernels would be compiled once more for those."""
    return np.array(table.column(name).to_numpy(), dtype)


def _flat(table: pa.Table, name: str) -> NDArray[Any]:
    column = table.column(name)
    values = pa.concat_arrays([chunk.flatten() for chunk in column.chunks]) if column.num_chunks else None
    dtype = DTYPES[name]
    return np.empty(0, dtype) if values is None else np.array(values.to_numpy(zero_copy_only=False), dtype)


def _starts(table: pa.Table, name: str) -> NDArray[np.int64]:
    lengths = [chunk.value_lengths().to_numpy() for chunk in table.column(name).chunks]
    return np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths]), dtype=np.int64)]
    )
