"""What tests of the runner share: a store in memory, and a training that does what the test says."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from service.artifacts import MemoryArtifacts
from service.job_run import JobRun
from service.job_states import JobState
from service.migrate import upgrade
from service.requests import parse
from service.runner import Runner, RunnerSettings
from service.scheduling import Place, Site
from service.sql_engine import memory_engine
from service.sql_store import SqlStore
from service.store import Job, NewJob
from service.trainer import Trainer
from tests.service.polling import wait_until
from tests.service.tables_of_data import request
from workers.errors import GangUnavailable
from workers.in_process import train_in_process
from workers.job import Progress, TrainingJob, TrainingOutcome

Script = Callable[[TrainingJob, Progress], TrainingOutcome]


class ScriptedTrainer(Trainer):
    """Trains as the test says. `began` is set when a training has begun; `down` makes the cluster unreachable; workers:
    memory of those that there are (None: no cluster), of which only one job has each; only: what trainings got."""

    def __init__(self) -> None:
        super().__init__(None)
        self.script: Script = train_in_process
        self.began = threading.Event()
        self.go_on = threading.Event()
        self.down = False
        self.workers: dict[str, int] | None = None
        self.only: list[tuple[str, ...]] = []

    def site(self, own_busy: bool) -> Site:
        own = super().site(own_busy)
        if self.workers is None:
            return own
        # No worker ever says that it is busy: what is placed is in the store.
        return Site(tuple(Place(name, memory) for name, memory in self.workers.items()), own.own)

    def prepare(self) -> None:
        if self.down:
            raise GangUnavailable("cluster tcp://nowhere: nobody answers")

    def train(
        self, job: TrainingJob, n_workers: int, progress: Progress, only: tuple[str, ...] = (), fewest: int = 1
    ) -> TrainingOutcome:
        self.only.append(only)
        self.began.set()
        return self.script(job, progress)

    def held(self, job: TrainingJob, progress: Progress) -> TrainingOutcome:
        """A script: does nothing until the test says so, then trains."""
        assert self.go_on.wait(60)
        return train_in_process(job, progress)


class Bench:
    """A store in memory, a scripted trainer, and runners over them."""

    def __init__(self, data_root: Path) -> None:
        engine = memory_engine()
        upgrade(engine)
        self.store = SqlStore(engine)
        self.artifacts = MemoryArtifacts()
        self.trainer = ScriptedTrainer()
        self.data_root = data_root
        self.runners: list[Runner] = []

    def runner(
        self, owner: str = "one", previous: str | None = None, lease_seconds: float = 60, **changes: float
    ) -> Runner:
        def make_run(stopping: threading.Event) -> JobRun:
            return JobRun(self.store, self.artifacts, self.trainer, self.data_root, stopping)

        settings = RunnerSettings(owner, previous, lease_seconds, **{"poll_seconds": 0.05, **changes})
        runner = Runner(self.store, self.trainer, make_run, settings)
        self.runners.append(runner)
        return runner

    def submit(self, **changes: Any) -> Job:
        body = parse(request(**changes)).model_dump(mode="json")
        workers, rounds = body["resources"]["workers"], body["rounds"]
        wanted = None if workers == "auto" else workers
        return self.store.submit(NewJob("trees", body, "h", rounds, None, body["priority"], wanted))[0]

    def wait(self, job: Job, *states: JobState) -> Job:
        return wait_until(lambda: self.store.get(job.id), lambda found: found.state in states)

    def history(self, job: Job) -> list[str]:
        return [step.state.value for step in self.store.transitions(job.id)]
