"""A checkpoint: the model so far and all that is needed to go on, as one Arrow IPC file without pickle.

    row t       nodes (feature, kind, bin, missing left, left, right) and payload as lists, multiplier, column
    metadata    b"edgewise-checkpoint": canonical JSON (format, config, facts of the data, sha256)
                b"thresholds", b"threshold_start", b"has_missing", b"class_counts", b"round_start", b"records",
                b"round_seconds", b"conditions": little-endian arrays

Nothing in it depends on how many members trained: it is resumed on a cluster of any size. It is written again and again
while rounds go on, all of them every time, so what there is of each round is held as arrays: JSON of the records took
ten times as long as all the rest. Whoever writes it again keeps those arrays, and the room for the file
(rounds_so_far.py): memory that a process has not had before can take longer than all that is put there. Columns are
compressed as Arrow IPC has it, which its readers undo by themselves.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from boost_core.binning import Binning
from boost_core.catalogue import plans_rounds
from boost_core.config import TrainingConfig
from boost_core.decoding import plain_decoding
from boost_core.fitted import Speech
from boost_core.model import Forest
from boost_core.replay import rounds_of
from boost_core.start import ModelSoFar
from workers.data_plan import DataPlan
from workers.errors import CheckpointDamaged, CheckpointRefused
from workers.model_file import NONSENSE, canonical_json
from workers.rounds_so_far import RoundsSoFar, records_of

CHECKPOINT_FORMAT = 2
# zstd's level: 13.3 MB of 11,000 rounds are 4.8 MB with 1 and 4.9 with -1, in 25 ms both; lz4 has 7.4 MB.
COMPRESSION = ("zstd", 1)
FRAMES = 1 << 16  # bytes of what lies around buffers that are written together, and of such as cannot be compressed
ROUNDS_AT_ONCE = 512  # compressed together: what that takes is small, and the same memory again and again
META = b"edgewise-checkpoint"
NODE_LISTS = {
    "node_feature": "<i4", "node_kind": "i1", "node_bin": "<i4", "node_missing_left": "?", "node_left": "<i4",
    "node_right": "<i4",
}  # fmt: skip
ARRAYS = {
    "thresholds": "<f8",
    "threshold_start": "<i8",
    "has_missing": "?",
    "class_counts": "<i8",
    "round_start": "<i8",
    "round_seconds": "<f8",
}


@dataclass(frozen=True)
class Checkpoint:
    """What a job has come to.

    facts: what the plan said of the data, JSON-ready; class_counts, n_train, n_valid: as in
    TrainingData; n_rows: training rows that are used; fingerprints: of the
    training and of the validation rows; round_seconds: what each round took.
    """

    config: TrainingConfig
    facts: Mapping[str, Any]
    binning: Binning
    class_counts: NDArray[np.int64]
    n_rows: int
    n_train: int
    n_valid: int
    fingerprints: tuple[int, int]
    model: ModelSoFar
    round_seconds: tuple[float, ...]

    @property
    def n_rounds(self) -> int:
        return self.model.n_rounds


def facts_of(plan: DataPlan) -> dict[str, Any]:
    """What must be the same when a job is resumed, besides what its rows hold."""
    return {
        "features": [[feature.name, feature.type] for feature in plan.features],
        "label": plan.label,
        "weight": plan.weight,
        "classes": list(plan.classes),
        "training rows": plan.train.n_rows,
        "validation rows": plan.valid.n_rows if plan.valid else 0,
    }


def check_same(checkpoint: Checkpoint, config: TrainingConfig, plan: DataPlan) -> None:
    """Errors: CheckpointRefused names what is not as it was. More rounds may be asked for than before, or fewer.

    The rows themselves are compared once they are read: see `check_fingerprints`.
    """
    own, asked = _flat(checkpoint.config.to_dict()), _flat(config.to_dict())
    if not plans_rounds(config):  # its steps depend on how many rounds there will be
        own["rounds"] = asked["rounds"]
    own |= _flat({"data": dict(checkpoint.facts)})
    asked |= _flat({"data": facts_of(plan)})
    changed = [name for name in sorted(own.keys() | asked.keys()) if own.get(name) != asked.get(name)]
    if changed:
        told = "; ".join(f"{name} was {own.get(name)!r:.100} and is {asked.get(name)!r:.100}" for name in changed)
        raise CheckpointRefused(f"the checkpoint belongs to another training: {told}; submit it as a new job")
    if config.rounds < checkpoint.n_rounds:
        raise CheckpointRefused(
            f"the checkpoint has {checkpoint.n_rounds} rounds, {config.rounds} are asked for; ask for at least as many"
        )


def check_fingerprints(checkpoint: Checkpoint, found: tuple[int, int]) -> None:
    """Errors: CheckpointRefused if the rows hold something else than when the checkpoint was written."""
    for kind, own, now in zip(("training", "validation"), checkpoint.fingerprints, found, strict=True):
        if own != now:
            raise CheckpointRefused(
                f"the {kind} rows have changed since the checkpoint of round {checkpoint.n_rounds}: their fingerprint "
                f"was {own:016x} and is {now:016x}; restore the files, or submit a new job"
            )


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        inner = f"{prefix}{name}"
        flat |= _flat(value, f"{inner}.") if isinstance(value, Mapping) else {inner: _listed(value)}
    return flat


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """The content of the checkpoint's file."""
    return to_memory(checkpoint, RoundsSoFar()).tobytes()


def to_memory(checkpoint: Checkpoint, so_far: RoundsSoFar) -> memoryview:
    """The same without a copy, until the next call with so_far: what the caller keeps of the checkpoint before."""
    model, binning = checkpoint.model, checkpoint.binning
    so_far.bring_up(model)
    trees = so_far.trees.arrays
    held = trees | vars(binning) | vars(checkpoint)
    arrays = {name: np.asarray(held[name], dtype).tobytes() for name, dtype in ARRAYS.items()} | so_far.records
    n_outputs = trees["payload"].shape[1]
    columns = {name: _lists(trees[name], trees["node_start"]) for name in NODE_LISTS}
    columns["payload"] = _lists(trees["payload"].reshape(-1), trees["leaf_start"] * n_outputs)
    columns |= {name: _column(trees[name]) for name in ("multiplier", "column")}
    meta = {
        "format": CHECKPOINT_FORMAT,
        "config": checkpoint.config.to_dict(),
        "facts": dict(checkpoint.facts),
        "n_rows": checkpoint.n_rows,
        "n_train": checkpoint.n_train,
        "n_valid": checkpoint.n_valid,
        "fingerprints": [f"{each:016x}" for each in checkpoint.fingerprints],
        "speech": so_far.trees.speech.value,
        "n_outputs": n_outputs,
        "slack": model.slack,
        "perfect": model.perfect,
    }
    table = pa.table(columns)
    meta["sha256"] = _digest(meta, table, arrays)
    metadata = {META: canonical_json(meta)} | {name.encode(): content for name, content in arrays.items()}
    held = table.nbytes + sum(map(len, metadata.values()))
    return _file(table.replace_schema_metadata(metadata), held, so_far)


def _file(table: pa.Table, held: int, so_far: RoundsSoFar) -> memoryview:
    """The table as a file in the room that is kept for it. It is not compressed by threads of Arrow: a member has those
    that it was given. held: bytes of columns and of metadata, which a file has twice."""
    frames = FRAMES * (table.num_rows // ROUNDS_AT_ONCE + 2)
    room = so_far.room_for(2 * held + frames)
    sink = pa.FixedSizeBufferWriter(pa.py_buffer(room))
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec(*COMPRESSION), use_threads=False)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table, ROUNDS_AT_ONCE)
    return room.data[: sink.tell()]


def _digest(meta: Mapping[str, Any], table: pa.Table, arrays: Mapping[str, bytes]) -> str:
    """Over everything but itself."""
    digest = hashlib.sha256(canonical_json({name: value for name, value in meta.items() if name != "sha256"}))
    for name in sorted(arrays):
        digest.update(f"{name}{len(arrays[name])}".encode())
        digest.update(arrays[name])
    for name in table.column_names:
        for part in _parts(table.column(name)):
            digest.update(f"{name} {part.dtype.str} {len(part)}".encode())
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _parts(column: pa.ChunkedArray) -> list[NDArray[Any]]:
    """The values of a column, or those of its lists and the lists' lengths, as they lie in memory."""
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # which would copy a single one
    if not pa.types.is_large_list(array.type):
        return [array.to_numpy()]
    return [array.flatten().to_numpy(zero_copy_only=False), array.value_lengths().to_numpy()]


def _lists(values: NDArray[Any], starts: NDArray[np.int64]) -> pa.Array:
    return pa.LargeListArray.from_arrays(_column(starts), _column(values))


def _column(values: NDArray[Any]) -> pa.Array:
    """The same values without a copy; `pa.array` would import numpy.ma to ask whether some are masked."""
    raw = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else values
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.shape[0], [None, pa.py_buffer(raw)])


def from_bytes(content: bytes) -> Checkpoint:
    """The inverse of `to_bytes`. Errors: CheckpointDamaged; CheckpointRefused for another format."""
    try:
        with pa.ipc.open_file(pa.BufferReader(content)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        meta = json.loads(table.schema.metadata[META])
        written = meta["format"]
    except (OSError, *NONSENSE) as error:
        raise CheckpointDamaged("the file is not a checkpoint, or only a part of one") from error
    if written != CHECKPOINT_FORMAT:
        raise CheckpointRefused(
            f"the checkpoint has format {written!r} and this release reads format {CHECKPOINT_FORMAT}; "
            "submit the job again, or resume it with the release that wrote it"
        )
    try:
        arrays = {name: table.schema.metadata[name.encode()] for name in (*ARRAYS, "records", "conditions")}
        if _digest(meta, table, arrays) != meta["sha256"]:
            raise ValueError("its content does not match its sha256")
        return _assemble(meta, table, arrays)
    except NONSENSE as error:
        raise CheckpointDamaged(f"the checkpoint is damaged: {error}") from error


def _assemble(meta: dict[str, Any], table: pa.Table, raw: Mapping[str, bytes]) -> Checkpoint:
    arrays = {name: np.frombuffer(raw[name], dtype).copy() for name, dtype in ARRAYS.items()}
    rounds = rounds_of(_forest(meta, table, arrays["round_start"]))
    model = ModelSoFar(
        tuple(fitted for fitted, _ in rounds),
        tuple(multipliers for _, multipliers in rounds),
        records_of(raw),
        meta["slack"],
        meta["perfect"],
    )
    first, last = meta["fingerprints"]
    return Checkpoint(
        config=TrainingConfig.from_dict(meta["config"]),
        facts=meta["facts"],
        binning=Binning(arrays["thresholds"], arrays["threshold_start"], arrays["has_missing"]),
        class_counts=arrays["class_counts"],
        n_rows=meta["n_rows"],
        n_train=meta["n_train"],
        n_valid=meta["n_valid"],
        fingerprints=(int(first, 16), int(last, 16)),
        model=model,
        round_seconds=tuple(arrays["round_seconds"].tolist()),
    )


def _forest(meta: dict[str, Any], table: pa.Table, round_start: NDArray[np.int64]) -> Forest:
    speech, n_outputs = Speech(meta["speech"]), int(meta["n_outputs"])
    lists = {name: _from_lists(table.column(name), dtype) for name, dtype in NODE_LISTS.items()}
    payload, payload_start = _from_lists(table.column("payload"), "<i4")
    decoding = plain_decoding(2)  # nobody asks a model so far for classes
    return Forest(
        node_start=lists["node_feature"][1],
        leaf_start=payload_start // n_outputs,
        node_threshold=np.full(lists["node_feature"][0].shape[0], np.nan),
        payload=payload.reshape(-1, n_outputs),
        multiplier=np.array(table.column("multiplier").to_numpy(), "<i8"),
        column=np.array(table.column("column").to_numpy(), "<i4"),
        round_start=round_start,
        speech=speech,
        n_columns=2,
        decoding=decoding,
        **{name: values for name, (values, _) in lists.items()},
    )


def _from_lists(column: pa.ChunkedArray, dtype: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The values of all lists and where each begins."""
    array = column.combine_chunks()
    lengths = array.value_lengths().to_numpy() if len(array) else np.empty(0, np.int64)
    values = array.flatten().to_numpy(zero_copy_only=False) if len(array) else np.empty(0)
    return np.array(values, dtype), np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
