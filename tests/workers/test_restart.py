"""From where a job goes on, when its checkpoints cannot be looked up."""

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
from workers.restart import survey
from workers.shelf import Inventory

HELD = Inventory(fence=1000, n_rounds=0, train_ranges=((0, 240),), valid_ranges=())


@pytest.fixture
def job(plan: DataPlan, tmp_path: Path) -> TrainingJob:  # noqa: F811
    """A job whose checkpoints are in a folder that is a file."""
    (tmp_path / "kept").write_text("no folder")
    return job_of(plan, tmp_path / "kept")


def cluster_of(monkeypatch: pytest.MonkeyPatch, answers: dict[Any, Any]) -> Any:
    """A cluster of one worker that answers so."""
    monkeypatch.setattr(restart, "known_workers", lambda *_: {"tcp://a": SimpleNamespace(ready=True)})

    def call(_client: Any, function: Any, workers: list[str], *_: Any, seconds: float) -> dict[str, Any]:
        assert seconds > 0
        return dict.fromkeys(workers, answers.get(function))

    monkeypatch.setattr(restart, "call_workers", call)


def test_survivors_need_no_checkpoint(job: TrainingJob, monkeypatch: pytest.MonkeyPatch) -> None:
    model = to_bytes(small())
    cluster_of(monkeypatch, {plugin.inventory: HELD, plugin.shelved: model})
    remains = survey(None, job)  # type: ignore[arg-type]
    assert (remains.resume, remains.n_rounds) == (model, 0)
    assert remains.held == {"tcp://a": (((0, 240),), ())}


@pytest.mark.parametrize("inventory", [None, HELD], ids=["nobody holds it", "who holds it does not give it"])
def test_without_survivors_a_checkpoint_is_needed(
    job: TrainingJob, monkeypatch: pytest.MonkeyPatch, inventory: Inventory | None
) -> None:
    cluster_of(monkeypatch, {plugin.inventory: inventory})
    with pytest.raises(CheckpointsUnavailable, match=r"of job job cannot be looked up: .*Not a directory"):
        survey(None, job)  # type: ignore[arg-type]
