"""Jobs that go on from checkpoints: on request, after their cluster or server died, and not for ever."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from service.errors import WrongState
from service.job_states import MOST_LOST_RUNS, JobState
from service.settings import Settings
from service.store import Lease
from tests.service.bench import Bench
from tests.service.live_server import in_thread
from tests.service.polling import wait_for_job, wait_until
from tests.service.tables_of_data import request
from workers.cluster_calls import SchedulerLost
from workers.errors import CheckpointsUnavailable
from workers.in_process import train_in_process
from workers.job import Progress, TrainingJob, TrainingOutcome

Server = tuple[httpx.Client, FastAPI]


def test_a_lost_scheduler_puts_the_job_back(bench: Bench) -> None:
    def lose(_job: TrainingJob, progress: Progress) -> TrainingOutcome:
        bench.trainer.script = train_in_process
        raise SchedulerLost("the scheduler of tcp://a:1 does not answer")

    bench.trainer.script = lose
    job = bench.submit()
    bench.runner().start()
    job = bench.wait(job, JobState.SUCCEEDED)
    assert job.run == 2
    steps = bench.store.transitions(job.id)
    assert [step.state.value for step in steps] == [
        "queued", "starting", "paused", "queued", "starting", "running", "succeeded"
    ]  # fmt: skip
    assert steps[2].reason == "the scheduler of tcp://a:1 does not answer"


def test_a_job_waits_for_its_checkpoints(bench: Bench) -> None:
    """Nobody knows from where it goes on, and to begin anew would lose what was trained."""

    def away(_job: TrainingJob, _progress: Progress) -> TrainingOutcome:
        bench.trainer.script = train_in_process
        raise CheckpointsUnavailable("the checkpoints of job a cannot be looked up: the bucket is away")

    bench.trainer.script = away
    job = bench.submit()
    bench.runner().start()
    job = bench.wait(job, JobState.SUCCEEDED)
    assert (job.run, job.lost_runs) == (2, 0)
    assert bench.store.transitions(job.id)[2].reason == (
        "the checkpoints of job a cannot be looked up: the bucket is away"
    )


def test_a_job_whose_checkpoints_never_come_fails_in_the_end(bench: Bench) -> None:
    def away(_job: TrainingJob, _progress: Progress) -> TrainingOutcome:
        raise CheckpointsUnavailable("the bucket is away")

    bench.trainer.script = away
    job = bench.submit()
    bench.runner(worker_wait_seconds=0.3).start()
    assert bench.wait(job, JobState.FAILED).reason == "the bucket is away"


def test_a_job_that_kills_its_server_is_not_run_for_ever(bench: Bench) -> None:
    job = bench.submit()
    for lost in range(1, MOST_LOST_RUNS + 1):
        assert bench.store.take(f"server {lost}", 3600) is not None
        [found] = bench.store.release(f"server {lost}", "the server that ran it is gone")
        assert found.lost_runs == lost
    assert bench.store.get(job.id).state is JobState.FAILED
    assert f"run {MOST_LOST_RUNS} in a row that was lost without a further round" in (
        bench.store.get(job.id).reason or ""
    )
    assert bench.store.resume(job.id, None).lost_runs == 0


def test_progress_and_orderly_stops_are_not_held_against_a_job(bench: Bench, figures: dict[str, float]) -> None:
    from service.store import RoundEntry

    job = bench.submit()
    for run in range(1, 3 * MOST_LOST_RUNS):
        assert bench.store.take("one", 3600) is not None
        lease = Lease(job.id, run, "one")
        bench.store.change(lease, JobState.RUNNING)
        bench.store.append_rounds(lease, [RoundEntry(run, dict(figures), 0.1)])
        bench.store.release("one", "gone", counts=run % 2 == 0)
    assert bench.store.get(job.id).state is JobState.QUEUED


@pytest.fixture
def figures() -> dict[str, float]:
    from tests.service.test_store_machine import FIGURES

    return dict(FIGURES)


def test_a_warning_is_on_the_job_and_in_its_history(bench: Bench) -> None:
    def warned(job: TrainingJob, progress: Progress) -> TrainingOutcome:
        progress.warn("the disk is full")  # type: ignore[attr-defined]
        return train_in_process(job, progress)

    bench.trainer.script = warned
    job = bench.submit()
    bench.runner().start()
    bench.wait(job, JobState.SUCCEEDED)
    told = [(step.state.value, step.reason) for step in bench.store.transitions(job.id)]
    assert ("starting", "the disk is full") in told


def test_a_job_at_work_cannot_be_resumed_nor_shortened(bench: Bench) -> None:
    job = bench.submit()
    assert bench.store.resume(job.id, 9).rounds == 9
    with pytest.raises(WrongState, match="as many or more"):
        bench.store.resume(job.id, 2)
    assert bench.store.take("one", 3600) is not None
    with pytest.raises(WrongState, match="only a job that is over"):
        bench.store.resume(job.id, None)


@pytest.fixture
def server(data_root: Path, tmp_path: Path) -> Iterator[Server]:
    settings = Settings(data_root=data_root, state_dir=tmp_path / "state", poll_seconds=0.05)
    with in_thread(settings) as found:
        yield found


def sha(client: httpx.Client, job: str) -> str:
    return str(client.get(f"/v1/jobs/{job}").json()["answer"]["model_sha256"])


def test_jobs_are_resumed_over_http(server: Server, tmp_path: Path) -> None:
    client, _ = server
    whole = client.post("/v1/jobs", json=request(rounds=12)).json()["id"]
    wait_for_job(client, whole, "succeeded")
    short = client.post("/v1/jobs", json=request(rounds=4)).json()["id"]
    wait_for_job(client, short, "succeeded")
    answer = client.post(f"/v1/jobs/{short}/resume", json={"rounds": 12})
    assert answer.status_code == 202
    wait_for_job(client, short, "succeeded")
    assert sha(client, short) == sha(client, whole)
    assert client.get(f"/v1/jobs/{short}").json()["rounds"] == 12
    rounds = client.get(f"/v1/jobs/{short}/rounds").json()["rounds"]
    assert [each["round"] for each in rounds] == list(range(1, 13))
    assert client.post(f"/v1/jobs/{short}/resume", json={"rounds": 3}).status_code == 409
    assert client.delete(f"/v1/jobs/{short}").status_code == 204
    assert [path.name.split(".")[0] for path in (tmp_path / "state" / "checkpoints").iterdir()] == [whole] * 1


def test_a_cancelled_job_keeps_its_checkpoint(server: Server) -> None:
    client, _ = server
    job = client.post("/v1/jobs", json=request(rounds=1_000_000)).json()["id"]
    wait_until(lambda: client.get(f"/v1/jobs/{job}").json()["rounds_done"], lambda done: done > 0)
    client.post(f"/v1/jobs/{job}/cancel")
    wait_for_job(client, job, "cancelled")
    done = client.get(f"/v1/jobs/{job}").json()["rounds_done"]
    assert client.post(f"/v1/jobs/{job}/resume").status_code == 202
    wait_until(lambda: client.get(f"/v1/jobs/{job}").json()["rounds_done"], lambda now: now > done)
    client.post(f"/v1/jobs/{job}/cancel")
    wait_for_job(client, job, "cancelled")
    assert client.get(f"/v1/jobs/{job}").json()["run"] == 2


def test_without_a_checkpoint_there_is_nothing_to_resume(server: Server) -> None:
    client, _ = server
    assert client.post("/v1/jobs/nobody/resume").status_code == 404
    job = client.post("/v1/jobs", json=request(data={"train": "tree.parquet", "label": "kind"}, rounds=2))
    if job.status_code == 202:
        wait_for_job(client, job.json()["id"], "failed", "succeeded")


def test_checkpoints_that_are_away_are_told_of_and_hold_up_no_deletion(data_root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    settings = Settings(
        data_root=data_root, state_dir=tmp_path / "state", poll_seconds=0.05, checkpoint_dir=str(tmp_path / "file")
    )
    with in_thread(settings) as (client, _):
        job = client.post("/v1/jobs", json=request()).json()["id"]
        told = wait_until(lambda: client.get(f"/v1/jobs/{job}").json(), lambda found: len(found["transitions"]) > 3)
        assert f"the checkpoints of job {job} cannot be looked up: " in told["transitions"][2]["reason"]
        client.post(f"/v1/jobs/{job}/cancel").raise_for_status()
        wait_for_job(client, job, "cancelled")
        answer = client.post(f"/v1/jobs/{job}/resume")
        assert answer.status_code == 503
        assert answer.json()["type"] == "urn:edgewise:problem:checkpoints-unavailable"
        assert client.delete(f"/v1/jobs/{job}").status_code == 204
        assert client.get(f"/v1/jobs/{job}").status_code == 404
