"""From where a job goes on when its gang broke: what survivors hold, or its checkpoints, which may not be had."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.workers.test_checkpoint import job_of, plan, small  # noqa: F401
from workers import plugin, restart
from workers.checkpoint import to_bytes
from workers.data_plan import DataPlan
from workers.errors import CheckpointsUnavailable
from workers.job import TrainingJob
from workers.restart import Remains, survey
from workers.shelf import Inventory

HELD = Inventory(fence=1000, n_rounds=0, train_ranges=((0, 240),), valid_ranges=())
MODEL = to_bytes(small())


@pytest.fixture
def job(plan: DataPlan, tmp_path: Path) -> TrainingJob:  # noqa: F811
    """A job whose checkpoints are in a folder that is a file."""
    (tmp_path / "kept").write_text("no folder")
    return job_of(plan, tmp_path / "kept")


def cluster_of(monkeypatch: pytest.MonkeyPatch, answers: dict[str, dict[Any, Any]]) -> dict[str, bool]:
    """A cluster whose workers answer so; who of them was doubted when they were asked last."""
    asked: dict[str, bool] = {}
    monkeypatch.setattr(restart, "known_workers", lambda *_: dict.fromkeys(answers, SimpleNamespace(ready=True)))

    def call(_: Any, function: Any, workers: list[str], *_a: Any, seconds: float, doubted: Any = ()) -> dict[str, Any]:
        assert seconds > 0
        asked.update({worker: worker in doubted for worker in workers})
        return {worker: answers[worker].get(function) for worker in workers}

    monkeypatch.setattr(restart, "call_workers", call)
    return asked


def holding(n_rounds: int = 0, fence: int = 1000) -> dict[Any, Any]:
    """The answers of a survivor."""
    return {plugin.inventory: replace(HELD, n_rounds=n_rounds, fence=fence), plugin.shelved: MODEL}


def test_survivors_of_the_gang_need_no_checkpoint(job: TrainingJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart, "stored", lambda _: pytest.fail("was looked up"))
    cluster_of(monkeypatch, {"tcp://a": holding(n_rounds=2)})
    remains = survey(None, job)  # type: ignore[arg-type]
    assert (remains.resume, remains.n_rounds, remains.silent) == (MODEL, 2, ())
    assert remains.held == {"tcp://a": (((0, 240),), ())}


def test_of_an_earlier_gang_the_checkpoint_counts_where_it_is_ahead(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restart, "stored", lambda _: Remains(b"kept", 3))
    cluster_of(monkeypatch, {"tcp://a": holding(n_rounds=2, fence=999)})
    remains = survey(None, job)  # type: ignore[arg-type]
    assert (remains.resume, remains.n_rounds) == (b"kept", 3)
    assert remains.held == {"tcp://a": (((0, 240),), ())}
    cluster_of(monkeypatch, {"tcp://a": holding(n_rounds=4, fence=999)})
    assert survey(None, job).resume == MODEL  # type: ignore[arg-type]


def test_survivors_of_an_earlier_gang_go_on_without_checkpoints(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_of(monkeypatch, {"tcp://a": holding(n_rounds=2, fence=999)})
    assert survey(None, job).resume == MODEL  # type: ignore[arg-type]


def test_who_is_silent_is_told_and_who_was_is_doubted(job: TrainingJob, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = {plugin.inventory: TimeoutError()}
    asked = cluster_of(monkeypatch, {"tcp://a": holding(), "tcp://b": silent, "tcp://c": silent})
    remains = survey(None, job, ("tcp://b",))  # type: ignore[arg-type]
    assert remains.silent == ("tcp://b", "tcp://c")
    assert asked == {"tcp://a": False, "tcp://b": True, "tcp://c": False}


@pytest.mark.parametrize("inventory", [None, HELD], ids=["nobody holds it", "who holds it does not give it"])
def test_without_survivors_a_checkpoint_is_needed(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch, inventory: Inventory | None
) -> None:
    cluster_of(monkeypatch, {"tcp://a": {plugin.inventory: inventory}})
    with pytest.raises(CheckpointsUnavailable, match=r"of job job cannot be looked up: .*Not a directory"):
        survey(None, job)  # type: ignore[arg-type]
