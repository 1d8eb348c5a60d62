"""A worker's lease book: exclusive, fenced, and never left behind."""

from collections.abc import Iterator

import pytest

from boost_core.errors import CollectiveError
from tests.workers.meshes import LOOPBACK
from workers.endpoint import Endpoint
from workers.lease import Lease, LeaseBook, LeaseRefused, Refusal
from workers.messages import RunEnded


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book(clock: Clock) -> Iterator[LeaseBook]:
    book = LeaseBook(lambda: Endpoint(LOOPBACK), clock)
    yield book
    if book._lease:
        book.end(book._lease)


def take(book: LeaseBook, job_id: str = "a", run: int = 1) -> Lease:
    lease = book.take(job_id, run, 10.0)
    assert isinstance(lease, Lease)
    return lease


def begin(book: LeaseBook, aborted: list[str], job_id: str = "a", run: int = 1) -> Lease:
    """A member that runs and writes down why it is broken."""
    take(book, job_id, run)
    lease = book.begin(job_id, run, f"key-{job_id}-{run}")
    book.on_abort(lease, aborted.append)
    return lease


def is_listening(lease: Lease) -> bool:
    return lease.endpoint._listener.fileno() >= 0


def test_one_run_at_a_time(book: LeaseBook) -> None:
    take(book, "a", 3)
    refusal = book.take("b", 1, 10.0)
    assert refusal == Refusal("held by job a, run 0.3")
    assert book.holder == ("a", 3)


def test_taking_twice_gives_the_same_lease(book: LeaseBook) -> None:
    assert take(book) is take(book)


def test_a_released_lease_without_a_member_is_gone_with_its_endpoint(book: LeaseBook) -> None:
    lease = take(book)
    book.release("a", 1, "not needed")
    assert book.holder is None
    assert not is_listening(lease)
    with pytest.raises(LeaseRefused, match="nobody has it"):
        book.begin("a", 1, "key")


def test_release_by_somebody_else_changes_nothing(book: LeaseBook) -> None:
    lease = take(book)
    book.release("a", 2, "mistaken")
    book.release("b", 1, "mistaken")
    assert book.holder == ("a", 1)
    assert is_listening(lease)


def test_a_lease_lapses_if_no_member_begins(book: LeaseBook, clock: Clock) -> None:
    lease = take(book)
    clock.now = 9.9
    assert book.holder == ("a", 1)
    clock.now = 10.0
    assert book.holder is None
    assert not is_listening(lease)
    take(book, "b")


def test_a_lease_under_a_member_does_not_lapse(book: LeaseBook, clock: Clock) -> None:
    begin(book, [])
    clock.now = 1e6
    assert book.holder == ("a", 1)


def test_a_released_member_is_told_and_keeps_the_worker_until_it_ends(book: LeaseBook) -> None:
    aborted: list[str] = []
    lease = begin(book, aborted)
    book.release("a", 1, "the job failed")
    assert aborted == ["the job failed"]
    assert lease.cancelled
    assert isinstance(book.take("b", 1, 10.0), Refusal)
    book.end(lease)
    take(book, "b")


def test_a_member_that_is_ended_before_it_can_be_broken_hears_it_then(book: LeaseBook) -> None:
    take(book)
    lease = book.begin("a", 1, "key")
    book.release("a", 1, "the job failed")
    with pytest.raises(RunEnded, match="the job failed"):
        book.on_abort(lease, lambda reason: None)


def test_cancel_reaches_the_runs_own_member_only(book: LeaseBook) -> None:
    lease = begin(book, [])
    assert not book.cancel("a", 2)
    assert not book.cancel("b", 1)
    assert not lease.cancelled
    assert book.cancel("a", 1)
    assert lease.cancelled


def test_a_member_begins_once(book: LeaseBook) -> None:
    begin(book, [])
    with pytest.raises(LeaseRefused, match="began once before"):
        book.begin("a", 1, "key")
    with pytest.raises(CollectiveError, match=r"job a, run 0\.1 has it"):
        book.begin("b", 1, "key")


def test_an_older_run_gets_nothing_once_a_newer_one_was_seen(book: LeaseBook) -> None:
    take(book, "a", 5)
    book.release("a", 5, "done")
    refusal = book.take("a", 4, 10.0)
    assert refusal == Refusal("run 0.5 of job a was seen there: run 0.4 is over", for_good=True)
    take(book, "b", 1)  # another job counts for itself


def test_a_newer_run_replaces_an_older_one_that_has_not_begun(book: LeaseBook) -> None:
    old = take(book, "a", 1)
    take(book, "a", 2)
    assert book.holder == ("a", 2)
    assert not is_listening(old)
    with pytest.raises(LeaseRefused, match=r"run 0\.1 does not hold this worker: job a, run 0\.2 has it"):
        book.begin("a", 1, "key")


def test_a_newer_run_breaks_an_older_member_and_waits_for_its_end(book: LeaseBook) -> None:
    aborted: list[str] = []
    lease = begin(book, aborted)
    assert isinstance(book.take("a", 2, 10.0), Refusal)
    assert aborted == ["run 0.2 of job a took over"]
    book.end(lease)
    take(book, "a", 2)


def test_a_task_that_was_given_up_breaks_its_member(book: LeaseBook) -> None:
    aborted: list[str] = []
    begin(book, aborted)
    book.task_gone("another key", "gone")
    assert aborted == []
    book.task_gone("key-a-1", "gone")
    assert aborted == ["gone"]


def test_the_end_of_an_old_lease_does_not_free_a_new_one(book: LeaseBook) -> None:
    lease = begin(book, [])
    book.end(lease)
    take(book, "b")
    book.end(lease)
    assert book.holder == ("b", 1)


def test_a_worker_that_cannot_listen_refuses() -> None:
    def fail() -> Endpoint:
        raise OSError("no such address")

    assert LeaseBook(fail).take("a", 1, 10.0) == Refusal("cannot listen for members: no such address")


def test_closing_breaks_the_member(book: LeaseBook) -> None:
    aborted: list[str] = []
    begin(book, aborted)
    book.close()
    assert aborted == ["the worker is closing"]
