"""The runner with a training that does what the test says: cancellation, loss, failure, shutdown, restart."""

import threading

import pytest

from boost_core.errors import BoundBroken
from service.api.job_answers import JobAnswer
from service.job_states import JobState
from service.sql_store import utc_now
from service.store import Decide, Job, Lease, NewJob
from tests.service.bench import Bench
from tests.service.polling import wait_until
from workers.errors import DataError, GangUnavailable
from workers.in_process import train_in_process
from workers.job import Progress, TrainingJob, TrainingOutcome

GB = 10**9


def test_a_submitted_job_is_taken_at_once(bench: Bench) -> None:
    runner = bench.runner()
    runner.start()
    wait_until(runner.trouble, lambda trouble: trouble is None)
    job = bench.submit()
    runner.wake()
    job = bench.wait(job, JobState.SUCCEEDED)
    assert job.rounds_done == 5
    assert bench.artifacts.get(bench.store.version("trees", 1).artifact)


def test_jobs_are_run_in_their_order(bench: Bench) -> None:
    jobs = [bench.submit(rounds=2) for _ in range(3)]
    bench.runner().start()
    ended = [bench.wait(job, JobState.SUCCEEDED) for job in jobs]
    times = [job.started_at for job in ended if job.started_at]
    assert times == sorted(times)
    assert [job.model_version for job in ended] == [1, 2, 3]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DataError(("data", "train"), "the file changed"), "the file changed"),
        (BoundBroken("round 3: too much"), "round 3: too much"),
        (RuntimeError("secret"), "internal error (RuntimeError); the server's log has the details"),
    ],
)
def test_a_failure_is_told_and_stays_alone(bench: Bench, error: Exception, reason: str) -> None:
    def fail(_job: TrainingJob, _progress: Progress) -> TrainingOutcome:
        bench.trainer.script = train_in_process
        raise error

    bench.trainer.script = fail
    bad, good = bench.submit(), bench.submit()
    bench.runner().start()
    assert bench.wait(bad, JobState.FAILED).reason == reason
    assert bench.history(bad)[-1] == "failed"
    bench.wait(good, JobState.SUCCEEDED)


def test_data_that_vanished_fail_the_job(bench: Bench) -> None:
    job = bench.submit(data={"train": "gone.parquet", "label": "kind"})
    bench.runner().start()
    assert "gone.parquet" in (bench.wait(job, JobState.FAILED).reason or "")


def test_what_a_starting_job_does_is_told(bench: Bench) -> None:
    def compile(job: TrainingJob, progress: Progress) -> TrainingOutcome:
        progress.phase("compile")
        return bench.trainer.held(job, progress)

    bench.trainer.script = compile
    job = bench.submit()
    bench.runner().start()
    assert bench.trainer.began.wait(60)
    wait_until(lambda: bench.store.get(job.id).phase, lambda phase: phase == "compile")
    now = bench.store.get(job.id)
    assert (now.state, JobAnswer.of(now, utc_now()).phase) == (JobState.STARTING, "compile")
    bench.trainer.go_on.set()
    done = bench.wait(job, JobState.SUCCEEDED)
    assert JobAnswer.of(done, utc_now()).phase is None


def test_cancelled_only_when_the_training_has_ended(bench: Bench) -> None:
    bench.trainer.script = bench.trainer.held
    job = bench.submit(rounds=1_000_000)
    runner = bench.runner()
    runner.start()
    assert bench.trainer.began.wait(60)
    bench.store.request_cancel(job.id)
    runner.wake()
    assert bench.store.get(job.id).state is JobState.CANCELLING
    bench.trainer.go_on.set()
    bench.wait(job, JobState.CANCELLED)
    assert bench.history(job) == ["queued", "starting", "cancelling", "cancelled"]


def test_cancelled_after_the_last_round_leaves_no_model(bench: Bench) -> None:
    def cancel_at_the_end(job: TrainingJob, progress: Progress) -> TrainingOutcome:
        outcome = train_in_process(job, progress)
        bench.store.request_cancel(job.job_id)
        return outcome

    bench.trainer.script = cancel_at_the_end
    job = bench.submit()
    bench.runner().start()
    bench.wait(job, JobState.CANCELLED)
    assert bench.store.list_models() == []
    assert bench.artifacts._data == {}


def test_a_failure_while_cancelling_is_a_cancellation_with_its_reason(bench: Bench) -> None:
    def fail(job: TrainingJob, _progress: Progress) -> TrainingOutcome:
        bench.store.request_cancel(job.job_id)
        raise GangUnavailable("a worker died")

    bench.trainer.script = fail
    job = bench.submit()
    bench.runner().start()
    assert "a worker died" in (bench.wait(job, JobState.CANCELLED).reason or "")


def test_a_stopped_runner_gives_its_job_back(bench: Bench) -> None:
    job = bench.submit(rounds=1_000_000)
    runner = bench.runner()
    runner.start()
    wait_until(lambda: bench.store.get(job.id).rounds_done, lambda done: done > 0)
    runner.stop(60)
    left = bench.store.get(job.id)
    assert (left.state, left.reason, left.lease_owner) == (JobState.QUEUED, "the server was stopped", None)
    assert bench.history(job) == ["queued", "starting", "running", "paused", "queued"]
    assert runner.trouble() == "stopped"


def test_a_new_runner_takes_over_from_the_dead_one(bench: Bench) -> None:
    jobs = [bench.submit(rounds=2) for _ in range(3)]
    dead = bench.store.take("dead", 3600)
    assert dead is not None
    bench.store.change(Lease(dead.id, 1, "dead"), JobState.RUNNING)
    bench.runner("new", previous="dead").start()
    for job in jobs:
        bench.wait(job, JobState.SUCCEEDED)
    assert bench.store.get(dead.id).run == 2
    steps = bench.store.transitions(dead.id)
    assert [step.state.value for step in steps][3:5] == ["paused", "queued"]
    assert steps[3].reason == "the server that ran it is gone"


def test_an_expired_lease_of_another_runner_is_taken_back(bench: Bench) -> None:
    job = bench.submit(rounds=2)
    assert bench.store.take("frozen", -1) is not None
    bench.runner("new").start()
    assert bench.wait(job, JobState.SUCCEEDED).run == 2


def test_a_lost_lease_stops_the_training_and_drops_its_results(bench: Bench) -> None:
    bench.trainer.script = bench.trainer.held
    job = bench.submit(rounds=1_000_000)
    bench.runner().start()
    assert bench.trainer.began.wait(60)
    # Somebody else takes the job while this runner is frozen, as it were.
    bench.store.release("one", "silent")
    assert bench.store.take("other", 3600) is not None
    bench.trainer.go_on.set()
    # A training of a million rounds has stopped when the next job is done.
    bench.wait(bench.submit(rounds=2), JobState.SUCCEEDED)
    kept = bench.store.get(job.id)
    assert (kept.state, kept.run, kept.lease_owner, kept.rounds_done) == (JobState.STARTING, 2, "other", 0)
    assert bench.history(job) == ["queued", "starting", "paused", "queued", "starting"]


def test_a_lease_is_kept_alive(bench: Bench) -> None:
    bench.trainer.script = bench.trainer.held
    job = bench.submit()
    bench.runner(lease_seconds=0.3).start()
    assert bench.trainer.began.wait(60)
    first = bench.store.get(job.id).lease_expires
    assert first is not None
    wait_until(lambda: bench.store.get(job.id).lease_expires, lambda now: now is not None and now > first)
    bench.trainer.go_on.set()
    assert bench.wait(job, JobState.SUCCEEDED).run == 1


def test_nothing_is_taken_while_the_cluster_is_away(bench: Bench) -> None:
    bench.trainer.down = True
    job = bench.submit()
    runner = bench.runner()
    runner.start()
    wait_until(runner.trouble, lambda trouble: trouble is not None and "nobody answers" in trouble)
    assert bench.store.get(job.id).state is JobState.QUEUED
    bench.trainer.down = False
    runner.wake()
    bench.wait(job, JobState.SUCCEEDED)


def test_jobs_run_side_by_side_one_a_worker(bench: Bench) -> None:
    bench.trainer.workers = {"a": 4 * GB, "b": 4 * GB}
    together = threading.Barrier(2)

    def met(job: TrainingJob, progress: Progress) -> TrainingOutcome:
        together.wait(60)
        return train_in_process(job, progress)

    bench.trainer.script = met
    jobs = [bench.submit(resources={"workers": 1, "threads": 1}) for _ in range(4)]
    bench.runner().start()
    ended = [bench.wait(job, JobState.SUCCEEDED) for job in jobs]
    assert sorted(bench.trainer.only) == [("a",), ("a",), ("b",), ("b",)]
    assert [job.workers for job in ended] == [1] * 4


def test_a_job_of_a_higher_priority_is_first(bench: Bench) -> None:
    jobs = [bench.submit(rounds=2, priority=priority) for priority in (0, 5, 1)]
    bench.runner().start()
    times = [bench.wait(job, JobState.SUCCEEDED).started_at for job in jobs]
    assert times[1] < times[2] < times[0]  # type: ignore[operator]


def test_workers_that_were_taken_meanwhile_send_the_job_back(bench: Bench) -> None:
    def taken(_job: TrainingJob, _progress: Progress) -> TrainingOutcome:
        bench.trainer.script = train_in_process
        raise GangUnavailable("2 workers are busy")

    bench.trainer.script = taken
    job = bench.submit()
    bench.runner().start()
    assert bench.wait(job, JobState.SUCCEEDED).run == 2
    assert bench.history(job)[1:5] == ["starting", "paused", "queued", "starting"]
    assert bench.store.transitions(job.id)[2].reason == "2 workers are busy"


def test_a_job_whose_workers_never_come_fails_in_the_end(bench: Bench) -> None:
    bench.trainer.workers = {"a": 4 * GB}
    stuck = bench.submit(resources={"workers": 2, "threads": 1})
    large = bench.store.submit(NewJob("m", {}, "h", 1, None, 0, None, 5 * GB, 0))[0]
    good = bench.submit(resources={"workers": 1, "threads": 1})
    bench.runner(worker_wait_seconds=0.3).start()
    assert (bench.wait(stuck, JobState.FAILED).reason or "").startswith("needs 2 worker(s); the cluster has 1; waited")
    assert "needs 5.00 GB on each of 1 worker(s); the largest has 4.00 GB" in (
        bench.wait(large, JobState.FAILED).reason or ""
    )
    bench.wait(good, JobState.SUCCEEDED)


def test_a_cancellation_is_heard_with_the_next_rounds(bench: Bench) -> None:
    """A server without a runner cannot wake it: the store's answer to a batch of rounds tells."""
    bench.trainer.script = train_in_process
    job = bench.submit(rounds=1_000_000)
    bench.runner(poll_seconds=3600).start()
    wait_until(lambda: bench.store.get(job.id).rounds_done, lambda done: done > 0)
    bench.store.request_cancel(job.id)
    bench.wait(job, JobState.CANCELLED)


def test_a_store_that_fails_for_a_while_loses_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    job = bench.submit()
    runner = bench.runner()
    place = bench.store.place
    failed = threading.Event()

    def broken(owner: str, lease_seconds: float, decide: Decide) -> list[Job]:
        failed.set()
        raise OSError("disk full")

    monkeypatch.setattr(bench.store, "place", broken)
    runner.start()
    assert failed.wait(60)
    wait_until(runner.trouble, lambda trouble: trouble is not None and "OSError" in trouble)
    monkeypatch.setattr(bench.store, "place", place)
    bench.wait(job, JobState.SUCCEEDED)
