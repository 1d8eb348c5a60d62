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
from boost_core.decoding import Decoding, Rule, plain_decoding
from boost_core.fitted import ALL_COLUMNS, Speech
from boost_core.model import FORMAT_VERSION, Feature, Forest, Model, RoundFigures
from boost_core.prediction import predict, scores
from tests.builders import Table, arrays_of, forest_arrays, make_table, part_of_forest
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
    figures = RoundFigures(*(np.empty(0) for _ in fields(RoundFigures)))
    return replace(model, forest=part_of_forest(model.forest, 0, 0), figures=figures)


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


def test_measured_conditions_come_back_and_count_in_the_hash(model: Model):
    conditions = np.linspace(-1, 1, 36).reshape(6, 6)
    conditions[0, 2] = np.nan
    measured = replace(model, conditions=conditions)
    loaded = from_bytes(to_bytes(measured))
    np.testing.assert_array_equal(loaded.conditions, conditions)
    assert model_sha256(loaded) == model_sha256(measured) != model_sha256(model)
    for wrong in (conditions[:-1], conditions.reshape(9, 4)):
        with pytest.raises(ModelFileError, match="damaged"):
            from_bytes(to_bytes(replace(model, conditions=wrong)))


def test_loaded_arrays_are_writable_as_trained_ones(model: Model):
    """Kernels are compiled once more for read-only arrays: seconds, at the first prediction."""
    loaded = from_bytes(to_bytes(model))
    assert all(array.flags.writeable for array in arrays_of(loaded.forest).values())
    assert all(array.flags.writeable for array in vars(loaded.figures).values())
    assert loaded.thresholds.flags.writeable


def test_a_model_without_weak_learners_comes_back(model: Model, table: Table):
    empty = without_learners(model)
    loaded = from_bytes(to_bytes(empty))
    assert everything(loaded) == everything(empty)
    assert set(predict(loaded, table.X).tolist()) == {0}


# Every way in which trees speak and scores are decoded: algorithm, weak learner, classes, score columns, trees a round.
KINDS = [
    ("adaboost", "stump", 2, 1, 1),
    ("adaboost_mh", "tree", 3, 3, 1),
    ("adaboost_mh", "real_tree", 3, 3, 1),
    ("adaboost_mh", "independent_stumps", 3, 3, 3),
    ("adaboost_mm", "tree", 3, 3, 1),
    ("samme", "tree", 4, 4, 1),
    ("one_vs_all", "stump", 3, 3, 3),
    ("all_pairs", "hamming_tree", 4, 6, 6),
    ("ecoc", "stump", 3, 16, 16),
]


@pytest.mark.parametrize(("name", "kind", "n_classes", "n_columns", "n_trees"), KINDS)
def test_models_of_every_kind_come_back(
    tmp_path: Path, name: str, kind: str, n_classes: int, n_columns: int, n_trees: int
):
    algorithm = {"name": name, "weak_learner": {"kind": kind}}
    table = make_table(60, 2, n_classes, seed=2)
    model = train_table(tmp_path, table, small_config(rounds=3, algorithm=algorithm))
    assert (model.forest.n_columns, model.forest.n_rounds, model.forest.n_trees) == (n_columns, 3, 3 * n_trees)
    loaded = from_bytes(to_bytes(model))
    assert everything(loaded) == everything(model)
    assert predict(loaded, table.X).tolist() == predict(model, table.X).tolist()
    assert model_sha256(loaded) == model_sha256(model)


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
    """Models of any shape: trees with random cuts, extreme thresholds and steps, figures with NaN and infinities."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_features, n_classes = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    decoding = draw(decodings(n_classes, rng))
    n_columns = decoding.code.shape[1]
    sizes = draw(st.lists(st.integers(0, 6), max_size=5))
    starts = [np.concatenate([[0], np.cumsum([size + extra for size in sizes], dtype=np.int64)]) for extra in (0, 1)]
    children = [grow(size, rng) for size in sizes]
    n_nodes, n_trees = sum(sizes), len(sizes)
    round_start = np.array([0, *sorted(rng.integers(0, n_trees + 1, draw(st.integers(0, 3)))), n_trees], np.int64)
    n_rounds = len(round_start) - 1
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
        multiplier=rng.integers(-(2**62), 2**62, n_trees),
        round_start=round_start,
        n_columns=n_columns,
        decoding=decoding,
        **draw(spoken(n_nodes + n_trees, n_trees, n_columns, rng)),
    )
    figures = RoundFigures(*(rng.choice(extremes, n_rounds) for _ in fields(RoundFigures)))
    return Model(
        config=base.config,
        features=tuple(Feature(draw(st.text(max_size=3)), "double") for _ in range(n_features)),
        label=draw(st.text(max_size=3)),
        classes=tuple(range(n_classes)),
        thresholds=np.concatenate(thresholds),
        threshold_start=np.concatenate([[0], np.cumsum([len(t) for t in thresholds])]).astype(np.int64),
        forest=forest,
        figures=figures,
        fingerprint=draw(st.integers(0, 2**64 - 1)),
        n_rows=draw(st.integers(0, 2**60)),
    )


@st.composite
def decodings(draw: Callable[[Any], Any], n_classes: int, rng: np.random.Generator) -> Decoding:
    rules = [Rule.ARGMAX, Rule.LOSS, Rule.HAMMING, *([Rule.BINARY] if n_classes == 2 else [])]
    rule = draw(st.sampled_from(rules))
    if rule in (Rule.ARGMAX, Rule.BINARY):
        return plain_decoding(1 if rule is Rule.BINARY else n_classes)
    return Decoding(rule, rng.integers(-1, 2, (n_classes, draw(st.integers(1, 9)))).astype(np.int8))


@st.composite
def spoken(
    draw: Callable[[Any], Any], n_leaves: int, n_trees: int, n_columns: int, rng: np.random.Generator
) -> dict[str, Any]:
    """What the leaves say, and for which columns: speech, payload and column of a forest."""
    speech = draw(st.sampled_from(list(Speech)))
    every = np.full(n_trees, ALL_COLUMNS, np.int32)
    if speech is Speech.LABEL:
        labels = rng.integers(0, n_columns, (n_leaves, 1)).astype(np.int32)
        return {"speech": speech, "payload": labels, "column": every}
    limit, kind = (128, np.int8) if speech is Speech.VOTES else (2**31, np.int32)
    by_column = n_trees > 0 and draw(st.booleans())
    payload = rng.integers(-limit, limit, (n_leaves, 1 if by_column else n_columns)).astype(kind)
    column = rng.integers(0, n_columns, n_trees).astype(np.int32) if by_column else every
    return {"speech": speech, "payload": payload, "column": column}


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
    yield "label", replace(model, label="other")
    yield "classes", replace(model, classes=(*model.classes[:-1], 99))
    yield "speech", replace(model, forest=replace(model.forest, speech=Speech.VALUES))
    for rule in (Rule.LOSS, Rule.HAMMING):
        code = np.ones((len(model.classes), model.forest.n_columns), np.int8)
        yield rule.value, replace(model, forest=replace(model.forest, decoding=Decoding(rule, code)))
    yield "code", replace(model, forest=replace(model.forest, decoding=Decoding(Rule.LOSS, -code)))
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
    assert len(hashes) == 10 + 2 + (len(fields(Forest)) - 3) + len(fields(RoundFigures))
    assert len({*hashes.values(), model_sha256(model)}) == len(hashes) + 1


def test_the_hash_does_not_depend_on_memory_layout(model: Model):
    strided = np.asfortranarray(model.forest.payload)
    big_endian = model.thresholds.astype(">f8")
    other = replace(model, thresholds=big_endian, forest=replace(model.forest, payload=strided))
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
    assert set(first.model.metadata()) == {
        "format_version", "config", "features", "label", "classes", "n_columns", "speech", "decoding", "fingerprint",
        "n_rows", "temperature",
    }  # fmt: skip
    config = {"algorithm", "weak_learner", "rounds", "max_bins", "seed", "stopping", "calibration"}
    assert set(first.model.metadata()["config"]) == config


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


KEYS = (
    "config", "features", "label", "classes", "n_columns", "speech", "decoding", "fingerprint", "n_rows", "sha256",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, None) for name in KEYS),
        *((name, 5) for name in KEYS if name != "n_rows"),
        *((name, "x") for name in KEYS),
        *(("n_columns", value) for value in (0, -1, 2, 1.5, 3.0, True, 2**70)),
        *(("speech", value) for value in ("values", "label", ["votes"])),
        *(("decoding", value) for value in ("binary", "loss", "hamming")),
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
            payload=forest.payload[:-1],
            leaf_start=np.minimum(forest.leaf_start, forest.leaf_start[-1] - 1),
        ),
    )
    yield "votes of other classes", replace(forest, payload=forest.payload[:, :2].copy())
    yield from bent_speech(forest)
    yield from bent_decodings(forest)
    for title, starts in {
        "rounds of more trees": [0, 1, forest.n_trees + 1],
        "rounds of fewer trees": [0, 1],
        "rounds that do not begin": [1, forest.n_trees],
        "rounds that go back": [0, 2, 1, forest.n_trees],
        "no rounds": [],
        "a round without figures": [0, 0, *range(1, forest.n_trees + 1)],
    }.items():
        yield title, replace(forest, round_start=np.array(starts, np.int64))


def bent_speech(forest: Forest) -> Iterator[tuple[str, Forest]]:
    one, every = forest.payload[:, :1].copy(), np.zeros(forest.n_trees, np.int32)
    for title, speech, payload, column in (
        ("a column too many", Speech.VOTES, one, every + 3),
        ("a negative column", Speech.VOTES, forest.payload, every - 2),
        ("votes of one column for all", Speech.VOTES, one, every - 1),
        ("votes of all columns for one", Speech.VOTES, forest.payload, every),
        ("some trees for one column", Speech.VOTES, one, every - (np.arange(forest.n_trees) == 0)),
        ("a label too many", Speech.LABEL, np.full(one.shape, 3, np.int32), every - 1),
        ("a negative label", Speech.LABEL, np.full(one.shape, -1, np.int32), every - 1),
        ("labels of one column", Speech.LABEL, np.zeros(one.shape, np.int32), every),
        ("labels of all columns", Speech.LABEL, np.zeros(forest.payload.shape, np.int32), every - 1),
    ):
        yield title, replace(forest, speech=speech, payload=payload, column=column.astype(np.int32))


def bent_decodings(forest: Forest) -> Iterator[tuple[str, Forest]]:
    code = np.ones((3, 3), np.int8)
    for title, rule, bad in (
        ("no code", Rule.LOSS, code[:0]),
        ("a code of fewer classes", Rule.LOSS, code[:2]),
        ("a code of more classes", Rule.HAMMING, np.concatenate([code, code])),
        ("a code of other numbers", Rule.HAMMING, 2 * code),
        ("a code of the least number", Rule.HAMMING, np.full((3, 3), -128, np.int8)),
        ("a code that nobody uses", Rule.ARGMAX, code),
        ("two classes of three", Rule.BINARY, code[:0]),
    ):
        yield title, replace(forest, decoding=Decoding(rule, bad))
    more = replace(forest, n_columns=4, payload=np.ones((len(forest.payload), 4), np.int8))
    yield "more scores than classes", replace(more, decoding=plain_decoding(4))
    one = replace(forest, n_columns=1, payload=np.ones((len(forest.payload), 1), np.int8))
    yield "a score for three classes", replace(one, decoding=plain_decoding(1))


def test_trees_that_cannot_be_followed_are_refused_whatever_the_hash(model: Model):
    """A file may be made on purpose: its hash fits."""
    titles = []
    for title, forest in bent_forests(model.forest):
        assert "is a damaged model file" in refusal(to_bytes(replace(model, forest=forest))), title
        titles.append(title)
    assert len(titles) == 8 + 9 + 9 + 6
    assert len(set(titles)) == len(titles)


def test_thresholds_that_do_not_fit_are_refused(model: Model):
    for changed in (
        replace(model, thresholds=model.thresholds[:-1]),
        replace(model, threshold_start=model.threshold_start[:-1]),
        replace(model, threshold_start=model.threshold_start[::-1].copy()),
        replace(model, features=model.features[:-1]),
    ):
        assert "is a damaged model file" in refusal(to_bytes(changed))


def test_figures_that_do_not_fit_are_refused(model: Model):
    for field in fields(RoundFigures):
        fewer = replace(model.figures, **{field.name: getattr(model.figures, field.name)[:-1]})
        assert "is a damaged model file" in refusal(to_bytes(replace(model, figures=fewer)))


@pytest.mark.parametrize("name", ["multiplier", "column", "payload", "node_left", "node_threshold"])
def test_nulls_are_refused(model: Model, name: str):
    with pa.ipc.open_file(pa.BufferReader(to_bytes(model))) as reader:
        table = reader.read_all()
    values, place = table.column(name).to_pylist(), table.schema.get_field_index(name)
    damages = [[None, *values[1:]]]
    if isinstance(values[0], list):
        damages.append([[None, *values[0][1:]], *values[1:]])
    for damaged in damages:
        column = pa.array(damaged, table.schema.field(name).type)
        assert "values are missing" in refusal(arrow_file(table.set_column(place, name, column)))


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
