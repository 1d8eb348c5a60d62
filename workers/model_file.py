"""The model file: one Arrow IPC file, a row a tree, everything else in the schema's metadata.

    row t          nodes (feature, kind, bin, threshold, missing left, left, right) and payload as lists, multiplier,
                   column
    metadata       b"edgewise": canonical JSON (version, config, features, label, classes, ..., sha256)
                   b"thresholds", b"threshold_start", b"round_start", b"code", the rounds' figures, and their conditions
                   if they were asked for: little-endian arrays

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

from boost_core.conditions import NAMES
from boost_core.config import TrainingConfig
from boost_core.decoding import Decoding, Rule
from boost_core.fitted import Speech
from boost_core.model import FORMAT_VERSION, Feature, Forest, Model, RoundFigures
from workers.errors import ModelFileError
from workers.model_check import check_structure

META = b"edgewise"
NODE_COLUMNS = (
    "node_feature", "node_kind", "node_bin", "node_threshold", "node_missing_left", "node_left", "node_right",
)  # fmt: skip
TREE_COLUMNS = ("multiplier", "column")
FIGURES = tuple(field.name for field in fields(RoundFigures))
# Every array of a model in the order in which they are hashed.
DTYPES: dict[str, str] = {
    "thresholds": "<f8", "threshold_start": "<i8", "node_start": "<i8", "leaf_start": "<i8", "node_feature": "<i4",
    "node_kind": "i1", "node_bin": "<i4", "node_threshold": "<f8", "node_missing_left": "?", "node_left": "<i4",
    "node_right": "<i4", "payload": "<i4", "multiplier": "<i8", "column": "<i4", "round_start": "<i8", "code": "i1",
    **dict.fromkeys(FIGURES, "<f8"),
}  # fmt: skip
# The arrays that are no columns, in the schema's metadata under their names.
METADATA_ARRAYS = ("thresholds", "threshold_start", "round_start", "code", *FIGURES)
# Not in every model: hashed last where it is there.
CONDITIONS = "conditions"
# What strange content makes the readers of JSON and Arrow raise.
NONSENSE = (
    pa.ArrowException, ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError,
)  # fmt: skip


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys and no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def dtype_of(name: str, speech: Speech) -> str:
    """An array's type in the file and in the hash."""
    return "i1" if name == "payload" and speech is Speech.VOTES else DTYPES[name]


def _arrays(model: Model) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array of a model in the declared order, little-endian."""
    parts = vars(model) | vars(model.forest) | {"code": model.forest.decoding.code} | vars(model.figures)
    for name in DTYPES:
        yield name, parts[name].astype(dtype_of(name, model.forest.speech))
    if model.conditions is not None:
        yield CONDITIONS, model.conditions.astype("<f8")


def model_sha256(model: Model) -> str:
    """The model's identity: equal models have equal hashes wherever they were trained."""
    digest = hashlib.sha256(canonical_json(model.metadata()))
    for name, array in _arrays(model):
        digest.update(f"{name}{list(array.shape)}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def to_bytes(model: Model) -> bytes:
    """The content of the model's file."""
    arrays, payload = dict(_arrays(model)), model.forest.payload
    columns: dict[str, pa.Array] = {name: _lists(arrays[name], arrays["node_start"]) for name in NODE_COLUMNS}
    columns["payload"] = _lists(arrays["payload"].reshape(-1), arrays["leaf_start"] * payload.shape[1])
    columns |= {name: pa.array(arrays[name]) for name in TREE_COLUMNS}
    metadata = {META: canonical_json(model.metadata() | {"sha256": model_sha256(model)})}
    metadata |= {name.encode(): arrays[name].tobytes() for name in (*METADATA_ARRAYS, CONDITIONS) if name in arrays}
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
    return Model(
        config=TrainingConfig.from_dict(meta["config"]),
        features=tuple(Feature(**feature) for feature in meta["features"]),
        label=tuple(meta["label"]) if isinstance(meta["label"], list) else meta["label"],
        classes=tuple(meta["classes"]),
        thresholds=_from_metadata(table, "thresholds"),
        threshold_start=_from_metadata(table, "threshold_start"),
        forest=_forest(table, meta["n_columns"], Speech(meta["speech"]), Rule(meta["decoding"])),
        figures=RoundFigures(**{name: _from_metadata(table, name) for name in FIGURES}),
        fingerprint=int(meta["fingerprint"], 16),
        n_rows=meta["n_rows"],
        temperature=meta["temperature"],
        conditions=_conditions(table),
    )


def _forest(table: pa.Table, n_columns: int, speech: Speech, rule: Rule) -> Forest:
    column = _own(table, "column")
    n_outputs = 1 if speech is Speech.LABEL or (column >= 0).any() else n_columns
    return Forest(
        payload=_flat(table, "payload", dtype_of("payload", speech)).reshape(-1, n_outputs),
        node_start=_starts(table, "node_feature"),
        leaf_start=_starts(table, "payload") // n_outputs,
        multiplier=_own(table, "multiplier"),
        column=column,
        round_start=_from_metadata(table, "round_start"),
        speech=speech,
        n_columns=n_columns,
        decoding=Decoding(rule, _from_metadata(table, "code").reshape(-1, n_columns)),
        **{name: _flat(table, name, DTYPES[name]) for name in NODE_COLUMNS},
    )


def _from_metadata(table: pa.Table, name: str) -> NDArray[Any]:
    return np.frombuffer(table.schema.metadata[name.encode()], DTYPES[name]).copy()


def _conditions(table: pa.Table) -> NDArray[np.float64] | None:
    """[n_rounds, 6], where they were asked for."""
    raw = table.schema.metadata.get(CONDITIONS.encode())
    return None if raw is None else np.frombuffer(raw, "<f8").reshape(-1, len(NAMES)).copy()


def _own(table: pa.Table, name: str) -> NDArray[Any]:
    """A column as an array of its own. Arrow's are read-only, and kernels would be compiled once more for those."""
    return np.array(_whole(table.column(name)).to_numpy(), DTYPES[name])


def _flat(table: pa.Table, name: str, dtype: str) -> NDArray[Any]:
    chunks = [chunk.flatten() for chunk in _whole(table.column(name)).chunks]
    return np.array(_whole(pa.chunked_array(chunks)).to_numpy(), dtype) if chunks else np.empty(0, dtype)


def _starts(table: pa.Table, name: str) -> NDArray[np.int64]:
    lengths = [chunk.value_lengths().to_numpy() for chunk in _whole(table.column(name)).chunks]
    return np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths]), dtype=np.int64)]
    )


def _whole(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values. Errors: ValueError if some are null: a model has none."""
    if values.null_count:
        raise ValueError("values are missing")
    return values
