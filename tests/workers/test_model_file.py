"""A model file holds a model to the bit, and nothing else is taken for one."""

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boost_core.binning import midpoints
from boost_core.config import TrainingConfig
from boost_core.cut import CutKind
from boost_core.model import FORMAT_VERSION, Feature, Forest, Model, RoundFigures
from boost_core.prediction import predict, scores
from tests.builders import Table, forest_arrays, make_table
from tests.workers.parquet_tables import (
    columns_of,
    job_of,
    plan_of,
    small_config,
    train_on_threads,
    train_plan,
    train_table,
    write,
)
from workers.errors import ModelFileError
from workers.model_file import META, canonical_json, from_bytes, model_sha256, read_model, to_bytes, write_model

NAN = float("nan")


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(120, 4, 3, seed=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, table: Table) -> Model:
    return train_table(tmp_path_factory.mktemp("model"), table, small_config(rounds=6))


def everything(model: Model) -> dict[str, Any]:
    """All that a model holds, to the bit."""
    arrays = {"thresholds": model.thresholds, "threshold_start": model.threshold_start}
    arrays |= {field.name: getattr(model.figures, field.name) for field in fields(RoundFigures)}
    exact = {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in arrays.items()}
    return exact | forest_arrays(model.forest) | {"metadata": model.metadata(), "config": model.config}


def without_learners(model: Model) -> Model:
    """A run that found nothing to learn."""
    none = {name: getattr(model.forest, name)[:0] for name in vars(model.forest)}
    starts = {"node_start": np.zeros(1, np.int64), "leaf_start": np.zeros(1, np.int64)}
    figures = RoundFigures(*(np.empty(0) for _ in fields(RoundFigures)))
    return replace(model, forest=Forest(**(none | starts)), figures=figures)


# --- round trip ---------------------------------------------------------------------------------------------


def test_a_model_comes_back_to_the_bit(tmp_path: Path, model: Model, table: Table):
    path = tmp_path / "letters.edgewise"
    sha256 = write_model(path, model)
    loaded = read_model(path)
    assert everything(loaded) == everything(model)
    assert sha256 == model_sha256(model) == model_sha256(loaded)
    assert scores(loaded, table.X).tobytes() == scores(model, table.X).tobytes()
    assert write_model(tmp_path / "again.edgewise", loaded) == sha256
    assert (tmp_path / "again.edgewise").read_bytes() == path.read_bytes()


def test_loaded_arrays_are_writable_as_trained_ones(model: Model):
    """Kernels are compiled once more for read-only arrays: seconds, at the first prediction."""
    loaded = from_bytes(to_bytes(model))
    assert all(array.flags.writeable for array in vars(loaded.forest).values())
    assert loaded.thresholds.flags.writeable


def test_a_model_without_weak_learners_comes_back(model: Model, table: Table):
    empty = without_learners(model)
    loaded = from_bytes(to_bytes(empty))
    assert everything(loaded) == everything(empty)
    assert set(predict(loaded, table.X).tolist()) == {0}


def test_a_model_of_one_score_column_comes_back(tmp_path: Path):
    algorithm = {"name": "adaboost", "weak_learner": {"kind": "stump"}}
    model = train_table(tmp_path, make_table(60, 2, 2, seed=2), small_config(algorithm=algorithm))
    assert model.forest.leaf_votes.shape[1] == 1
    assert everything(from_bytes(to_bytes(model))) == everything(model)


@pytest.mark.parametrize(
    "classes",
    [("a", "ä", "日本"), ("", " ", '"quoted"\n'), (-5, 0, 2**64 - 1), (-1.5, 0.1, 1e300), (False, True, 2)],
)
def test_classes_come_back_as_they_are(model: Model, classes: tuple[Any, ...]):
    loaded = from_bytes(to_bytes(replace(model, classes=classes)))
    assert loaded.classes == classes
    assert [type(value) for value in loaded.classes] == [type(value) for value in classes]


@st.composite
def random_models(draw: Callable[[Any], Any], base: Model) -> Model:
    """Models of any shape: trees with random cuts, extreme thresholds and alphas, figures with NaN and infinities."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_features, n_classes = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    n_columns = 1 if n_classes == 2 and draw(st.booleans()) else n_classes
    sizes = draw(st.lists(st.integers(0, 6), max_size=5))
    starts = [np.concatenate([[0], np.cumsum([size + extra for size in sizes], dtype=np.int64)]) for extra in (0, 1)]
    children = [grow(size, rng) for size in sizes]
    n_nodes, n_learners = sum(sizes), len(sizes)
    extremes = np.array([NAN, np.inf, -np.inf, -0.0, 5e-324, 1.5])
    thresholds = [midpoints(np.unique(rng.normal(size=rng.integers(1, 6)))) for _ in range(n_features)]
    forest = Forest(
        node_start=starts[0].astype(np.int64),
        leaf_start=starts[1].astype(np.int64),
        node_feature=rng.integers(0, n_features, n_nodes).astype(np.int32),
        node_kind=rng.choice(list(CutKind), n_nodes).astype(np.int8),
        node_bin=rng.integers(-1, 255, n_nodes).astype(np.int32),
        node_threshold=rng.choice(extremes, n_nodes),
        node_missing_left=rng.random(n_nodes) < 0.5,
        node_left=np.concatenate([np.empty(0, np.int32), *(left for left, _ in children)]).astype(np.int32),
        node_right=np.concatenate([np.empty(0, np.int32), *(right for _, right in children)]).astype(np.int32),
        leaf_votes=rng.integers(-128, 128, (n_nodes + n_learners, n_columns)).astype(np.int8),
        alpha=rng.integers(-(2**62), 2**62, n_learners),
    )
    figures = RoundFigures(*(rng.choice(extremes, n_learners) for _ in fields(RoundFigures)))
    return Model(
        config=base.config,
        features=tuple(Feature(draw(st.text(max_size=3)), "double") for _ in range(n_features)),
        classes=tuple(range(n_classes)),
        thresholds=np.concatenate(thresholds),
        threshold_start=np.concatenate([[0], np.cumsum([len(t) for t in thresholds])]).astype(np.int64),
        forest=forest,
        figures=figures,
        fingerprint=draw(st.integers(0, 2**64 - 1)),
        n_rows=draw(st.integers(0, 2**60)),
    )


def grow(n_nodes: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Children of a random binary tree: leaves are replaced by nodes, as training does."""
    left, right = [0] * n_nodes, [0] * n_nodes
    free: list[tuple[list[int], int]] = []
    for node in range(n_nodes):
        if node:
            side, parent = free.pop(int(rng.integers(len(free))))
            side[parent] = node
        free += [(left, node), (right, node)]
    for leaf, (side, parent) in enumerate(free):
        side[parent] = ~leaf
    return left, right


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_model_comes_back_to_the_bit(model: Model, data: st.DataObject):
    drawn = data.draw(random_models(model))
    loaded = from_bytes(to_bytes(drawn))
    assert everything(loaded) == everything(drawn)
    assert model_sha256(loaded) == model_sha256(drawn)


# --- identity -----------------------------------------------------------------------------------------------


def changed_models(model: Model) -> Iterator[tuple[str, Model]]:
    """One smallest change a part of the model."""
    yield "config", replace(model, config=replace(model.config, seed=model.config.seed + 1))
    yield "features", replace(model, features=(replace(model.features[0], name="other"), *model.features[1:]))
    yield "classes", replace(model, classes=(*model.classes[:-1], 99))
    yield "fingerprint", replace(model, fingerprint=model.fingerprint ^ 1)
    yield "n_rows", replace(model, n_rows=model.n_rows + 1)
    for part, owner in (("", model), ("forest", model.forest), ("figures", model.figures)):
        for name in [field.name for field in fields(owner) if isinstance(getattr(owner, field.name), np.ndarray)]:
            array = getattr(owner, name).copy()
            flat = array.reshape(-1)
            flat.view(np.uint8)[flat.itemsize * (len(flat) // 2)] ^= 1
            new = replace(owner, **{name: array})
            yield name, replace(model, **{part: new}) if part else new


def test_every_part_counts_in_the_hash(model: Model):
    hashes = {name: model_sha256(changed) for name, changed in changed_models(model)}
    assert len(hashes) == 5 + 2 + len(fields(Forest)) + len(fields(RoundFigures))
    assert len({*hashes.values(), model_sha256(model)}) == len(hashes) + 1


def test_the_hash_does_not_depend_on_memory_layout(model: Model):
    strided = np.asfortranarray(model.forest.leaf_votes)
    big_endian = model.thresholds.astype(">f8")
    other = replace(model, thresholds=big_endian, forest=replace(model.forest, leaf_votes=strided))
    assert model_sha256(other) == model_sha256(model)
    assert everything(from_bytes(to_bytes(other))) == everything(model)


def test_nothing_in_the_file_says_where_it_was_trained(tmp_path: Path, table: Table):
    folder = tmp_path / "secret-folder"
    plan = plan_of(write(folder / "secret-file.parquet", columns_of(table)))
    job = replace(job_of(plan), job_id="secret-job", run=7, threads=2)
    [first, *_] = train_on_threads(job, 3, shuffle_seed=1)
    assert first.model is not None
    content = to_bytes(first.model)
    assert content == to_bytes(train_plan(plan).model)
    assert b"secret" not in content
    assert set(first.model.metadata()) == {"format_version", "config", "features", "classes", "fingerprint", "n_rows"}
    assert set(first.model.metadata()["config"]) == {"algorithm", "weak_learner", "rounds", "max_bins", "seed"}


def test_canonical_json_is_sorted_and_bare():
    assert canonical_json({"b": [1, 0.5, "ä"], "a": None}) == '{"a":null,"b":[1,0.5,"ä"]}'.encode()
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(NAN)


# --- what is not a model ------------------------------------------------------------------------------------


def refusal(content: bytes) -> str:
    with pytest.raises(ModelFileError) as caught:
        from_bytes(content, "m.edgewise")
    assert "'m.edgewise'" in str(caught.value)
    return str(caught.value)


def arrow_file(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def rewritten(model: Model, **meta: Any) -> bytes:
    """The model's file with other entries in its JSON; None takes an entry out."""
    with pa.ipc.open_file(pa.BufferReader(to_bytes(model))) as reader:
        table = reader.read_all()
    entries = json.loads(table.schema.metadata[META]) | meta
    kept = {name: value for name, value in entries.items() if value is not None}
    return arrow_file(table.replace_schema_metadata({**table.schema.metadata, META: canonical_json(kept)}))


@pytest.mark.parametrize("content", [b"", b"x", b"PAR1", b"ARROW1\0\0", b"{}" * 500, arrow_file(pa.table({"x": [1]}))])
def test_other_files_are_refused(content: bytes):
    assert "is not a model file" in refusal(content)


@pytest.mark.parametrize("meta", [b"[1]", b"null", b"\xff", b"{", b"[" * 100_000])
def test_strange_metadata_is_refused(meta: bytes):
    assert "is not a model file" in refusal(arrow_file(pa.table({"x": [1]}).replace_schema_metadata({META: meta})))


@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1, "1", None])
def test_other_format_versions_are_refused_by_name(model: Model, version: Any):
    message = refusal(rewritten(model, format_version=version))
    assert f"has model format {version!r}; this release reads format {FORMAT_VERSION}" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, None) for name in ("config", "features", "classes", "fingerprint", "n_rows", "n_columns", "sha256")),
        *((name, 5) for name in ("config", "features", "classes", "fingerprint", "sha256")),
        *((name, "x") for name in ("config", "features", "classes", "fingerprint", "n_rows", "n_columns", "sha256")),
        *(("n_columns", value) for value in (0, -1, 2, 1.5)),
        ("features", [{"name": "x"}]),
        ("classes", [1]),
        ("config", {"algorithm": {"name": "adaboost"}}),
    ],
)
def test_damaged_metadata_is_refused(model: Model, name: str, value: Any):
    assert "is a damaged model file" in refusal(rewritten(model, **{name: value}))


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ModelFileError, match=r"gone.edgewise' cannot be read: No such file"):
        read_model(tmp_path / "gone.edgewise")
    with pytest.raises(ModelFileError, match="cannot be read: Is a directory"):
        read_model(tmp_path)


def assert_refused_or_the_same(content: bytes, sha256: str) -> bool:
    """Some bytes of a file are padding or are stored twice; True if the damage was seen."""
    try:
        loaded = from_bytes(content)
    except ModelFileError:
        return True
    assert model_sha256(loaded) == sha256
    return False


def test_a_damaged_byte_never_changes_the_model_nor_ends_the_process(model: Model):
    content, sha256 = to_bytes(model), model_sha256(model)
    seen = 0
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= (0xFF, 0x01, 0x80)[place // 3 % 3]
        seen += assert_refused_or_the_same(bytes(damaged), sha256)
    assert seen > len(content) / 3 / 4


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["bytes", "run", "cut", "insert", "swap", "end"]))
def test_no_damage_changes_the_model(model: Model, seed: int, kind: str):
    content, rng = bytearray(to_bytes(model)), random.Random(seed)
    start = rng.randrange(len(content))
    stop = min(len(content), start + rng.choice([1, 8, 64, 512]))
    if kind == "bytes":
        for place in rng.sample(range(len(content)), 20):
            content[place] = rng.randrange(256)
    elif kind == "run":
        content[start:stop] = rng.randbytes(stop - start)
    elif kind == "cut":
        del content[start:stop]
    elif kind == "insert":
        content[start:start] = rng.randbytes(stop - start)
    elif kind == "swap":
        content[start:stop] = content[start:stop][::-1]
    else:
        del content[start:]
    assert_refused_or_the_same(bytes(content), model_sha256(model))


def bent_forests(forest: Forest) -> Iterator[tuple[str, Forest]]:
    """Forests that a kernel must never follow."""
    inner = int(np.flatnonzero(forest.node_left >= 0)[0])
    changes = {
        "a feature too many": ("node_feature", 0, 4),
        "a negative feature": ("node_feature", 0, -1),
        "an unknown kind": ("node_kind", 0, 9),
        "a circle": ("node_left", inner, 0),
        "a child of another tree": ("node_left", inner, 1000),
        "a leaf too many": ("node_right", 0, -1000),
    }
    for title, (name, place, value) in changes.items():
        array = getattr(forest, name).copy()
        array[place] = value
        yield title, replace(forest, **{name: array})
    yield (
        "a leaf too few",
        replace(
            forest,
            leaf_votes=forest.leaf_votes[:-1],
            leaf_start=np.minimum(forest.leaf_start, forest.leaf_start[-1] - 1),
        ),
    )
    yield "votes of other classes", replace(forest, leaf_votes=forest.leaf_votes[:, :2].copy())


def test_trees_that_cannot_be_followed_are_refused_whatever_the_hash(model: Model):
    """A file may be made on purpose: its hash fits."""
    titles = []
    for title, forest in bent_forests(model.forest):
        assert "is a damaged model file" in refusal(to_bytes(replace(model, forest=forest))), title
        titles.append(title)
    assert len(titles) == 8


def test_thresholds_that_do_not_fit_are_refused(model: Model):
    for changed in (
        replace(model, thresholds=model.thresholds[:-1]),
        replace(model, threshold_start=model.threshold_start[:-1]),
        replace(model, threshold_start=model.threshold_start[::-1].copy()),
        replace(model, features=model.features[:-1]),
    ):
        assert "is a damaged model file" in refusal(to_bytes(changed))


# --- writing ------------------------------------------------------------------------------------------------


class DiskFull(OSError):
    """What the tests make the disk say."""


def full(*_: Any, **__: Any) -> None:
    raise DiskFull("no space left on device")


@pytest.mark.parametrize("place", ["os.fsync", "pathlib.Path.replace"])
@pytest.mark.parametrize("before", [None, b"an older model"])
def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch, place: str, before: bytes | None
):
    path = tmp_path / "m.edgewise"
    if before is not None:
        path.write_bytes(before)
    monkeypatch.setattr(place, full)
    with pytest.raises(DiskFull):
        write_model(path, model)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == ([] if before is None else [before])


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch):
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_model(tmp_path / "m.edgewise", model)
    assert list(tmp_path.iterdir()) == []


def test_writing_over_an_older_model(tmp_path: Path, model: Model):
    path = tmp_path / "m.edgewise"
    write_model(path, without_learners(model))
    assert write_model(path, model) == model_sha256(read_model(path))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_file_is_as_open_as_the_umask_says(tmp_path: Path, model: Model, mask: int):
    before = os.umask(mask)
    try:
        write_model(tmp_path / "m.edgewise", model)
    finally:
        os.umask(before)
    assert (tmp_path / "m.edgewise").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_long_name_is_no_obstacle(tmp_path: Path, model: Model):
    path = tmp_path / ("m" * 246 + ".edgewise")
    assert write_model(path, model) == model_sha256(read_model(path))


def test_a_folder_that_is_not_there(tmp_path: Path, model: Model):
    with pytest.raises(FileNotFoundError):
        write_model(tmp_path / "gone" / "m.edgewise", model)


def test_the_config_comes_back_with_every_parameter(model: Model):
    config = from_bytes(to_bytes(model)).config
    assert config == model.config == TrainingConfig.from_dict(json.loads(canonical_json(model.config.to_dict())))
