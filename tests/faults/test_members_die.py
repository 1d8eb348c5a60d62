"""Members of a gang on a real cluster die at placed moments; the model is the undisturbed one, to the byte."""

import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from distributed import Client

from boost_core.catalogue import resolve_config
from boost_core.warm_up import WarmUp, warm_up
from tests.builders import make_table
from tests.faults.placed import DYING_ROUND
from tests.service.polling import wait_until
from tests.workers.parquet_tables import columns_of, plan_of, split_over_files, write
from tests.workers.registered import registered_workers
from workers import plugin
from workers.cluster import connect
from workers.cluster_calls import call_workers
from workers.data_plan import DataPlan
from workers.errors import TrainingFailed
from workers.gang import GangSettings, train_on_gang
from workers.in_process import train_in_process
from workers.job import CheckpointSettings, NoProgress, TrainingJob, TrainingOutcome
from workers.model_file import model_sha256
from workers.stages import COMPILE

pytestmark = [pytest.mark.alone, pytest.mark.faults]

N_WORKERS = 3
N_CLASSES = 4
ROUNDS = 8
CONFIG = resolve_config(
    {
        "algorithm": {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 4}},
        "rounds": ROUNDS,
    }
)
numbers = count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with connect(f"local:{N_WORKERS}") as client:
        yield client


@pytest.fixture
def client(cluster: Client) -> Client:
    """A cluster with all its workers, also after a test that killed some: their nannies bring them back."""
    cluster.wait_for_workers(N_WORKERS, timeout=60)
    return cluster


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> DataPlan:
    return plan_in(tmp_path_factory.mktemp("data"))


def plan_in(folder: Path) -> DataPlan:
    """Write the tables there."""
    paths = split_over_files(folder, columns_of(make_table(240, 4, N_CLASSES, seed=1)), (100, 140), 50)
    valid = write(folder / "valid.parquet", columns_of(make_table(60, 4, N_CLASSES, seed=2)))
    return plan_of(paths, valid)


@pytest.fixture(scope="module", autouse=True)
def undisturbed(plan: DataPlan) -> str:
    return hash_alone(plan)


def hash_alone(plan: DataPlan) -> str:
    """The hash of the model. Members find their kernels compiled."""
    warm_up(CONFIG, N_CLASSES, WarmUp(in_gang=True))
    return model_sha256(train_in_process(TrainingJob("alone", 1, plan, CONFIG, 1), NoProgress()).model)


class Told(NoProgress):
    """What a follower hears."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.rounds: list[int] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def rounds_done(self, batch: object) -> None:
        self.rounds += [each.record.round for each in batch]  # type: ignore[attr-defined]


class Trial:
    """A job whose members misbehave as a function of placed.py says."""

    def __init__(self, client: Client, plan: DataPlan, folder: Path, seconds: float = 1000.0) -> None:
        self.client, self.folder, self.told = client, folder, Told()
        self.job = TrainingJob(
            f"job-{next(numbers)}", 1, plan, CONFIG, 1, checkpoints=CheckpointSettings(str(folder), seconds)
        )

    def train(self, function: str, **settings: float) -> TrainingOutcome:
        chosen = GangSettings(member=f"tests.faults.placed:{function}", lease_seconds=120.0, **settings)  # type: ignore[arg-type]
        return train_on_gang(self.job, self.client, N_WORKERS, self.told, chosen)

    def notes(self, attempt: int) -> list[list[str]]:
        """What the members of an attempt left, by rank."""
        paths = sorted(self.folder.glob(f"{self.job.job_id}.notes.{attempt}.*"))
        return [path.read_text().split("\n")[:-1] for path in paths]

    def first_round(self, attempt: int) -> int:
        return int(next(line for line in self.notes(attempt)[0] if line.startswith("begin")).split()[1])

    def assert_whole(self, outcome: TrainingOutcome, undisturbed: str, frozen: str = "") -> None:
        """The undisturbed model, each round told once, and no worker holds anything: the frozen one is not asked."""
        assert model_sha256(outcome.model) == undisturbed
        assert self.told.rounds == list(range(1, ROUNDS + 1))
        assert [each.record.round for each in outcome.rounds] == self.told.rounds
        alive = sorted(set(registered_workers(self.client)) - {frozen})
        assert alive
        held = call_workers(self.client, plugin.inventory, alive, self.job.job_id, seconds=10.0)
        assert held == dict.fromkeys(alive)


class Killing(Told):
    """Kills the last member as soon as it hears that members compile, in the first attempts: after survivors comes who
    takes the place, and the rows, of the one that died."""

    def __init__(self, trial: Trial, attempts: int) -> None:
        super().__init__()
        self.trial, self.attempts, self.begun = trial, attempts, 0

    def phase(self, name: str) -> None:
        if name == COMPILE and self.begun < self.attempts:
            notes = wait_until(lambda: self.trial.notes(self.begun), lambda notes: len(notes) == N_WORKERS)
            os.kill(int(notes[-1][0].split()[1]), signal.SIGKILL)
            self.begun += 1


@pytest.mark.parametrize(
    ("function", "first_round"),
    [
        ("while_loading", 1),
        ("between_load_and_training", 1),
        ("in_a_reduction", DYING_ROUND),
        ("after_the_update", DYING_ROUND),
        ("two_at_once", DYING_ROUND),
        ("cut_off", DYING_ROUND),
        ("fails_once", DYING_ROUND),
    ],
)
def test_at_most_the_round_in_flight_is_trained_again(
    client: Client, plan: DataPlan, undisturbed: str, tmp_path: Path, function: str, first_round: int
) -> None:
    trial = Trial(client, plan, tmp_path)
    outcome = trial.train(function)
    trial.assert_whole(outcome, undisturbed)
    assert trial.first_round(1) == first_round
    assert trial.notes(2) == []
    assert f"going on after round {first_round - 1}" in trial.told.warnings[0]


def test_a_member_that_is_killed_again_and_again_while_it_compiles_costs_no_job(
    client: Client, plan: DataPlan, undisturbed: str, tmp_path: Path
) -> None:
    """Its rows are not to blame."""
    trial = Trial(client, plan, tmp_path)
    trial.told = Killing(trial, attempts=2)
    trial.assert_whole(trial.train("killed_twice_while_compiling"), undisturbed)
    assert len(trial.told.warnings) == 2
    assert len(trial.notes(2)) == N_WORKERS


def test_when_all_are_killed_the_last_checkpoint_counts(
    client: Client, plan: DataPlan, undisturbed: str, tmp_path: Path
) -> None:
    trial = Trial(client, plan, tmp_path, seconds=0.0)
    outcome = trial.train("all_of_them")
    trial.assert_whole(outcome, undisturbed)
    assert 1 < trial.first_round(1) <= DYING_ROUND


def test_half_a_checkpoint_leaves_the_one_before(
    client: Client, plan: DataPlan, undisturbed: str, tmp_path: Path
) -> None:
    trial = Trial(client, plan, tmp_path, seconds=0.0)
    trial.assert_whole(trial.train("writing_a_checkpoint"), undisturbed)
    assert trial.notes(1)


def test_a_frozen_member_is_left_out_and_fenced_when_it_wakes(
    client: Client, plan: DataPlan, undisturbed: str, tmp_path: Path
) -> None:
    trial = Trial(client, plan, tmp_path)
    outcome = trial.train("frozen", deadline_seconds=1.0, settle_seconds=0.0)
    _, pid, address = trial.notes(0)[1][0].split()
    try:
        trial.assert_whole(outcome, undisturbed, frozen=address)
        assert outcome.workers == 2
        assert trial.first_round(1) == DYING_ROUND
    finally:
        os.kill(int(pid), signal.SIGCONT)
    # the woken one answers again, holds nothing of the job, and takes part in the next
    after = Trial(client, plan, tmp_path)
    after.assert_whole(after.train("in_a_reduction"), undisturbed)


def test_a_member_that_fails_twice_on_the_same_rows_fails_the_job(
    client: Client, plan: DataPlan, tmp_path: Path
) -> None:
    trial = Trial(client, plan, tmp_path)
    with pytest.raises(TrainingFailed, match="the disk of this machine is gone") as caught:
        trial.train("fails_always")
    assert "not tried again: members were lost twice on the rows" in str(caught.value)
    assert (len(trial.notes(1)), trial.notes(2)) == (N_WORKERS, [])
