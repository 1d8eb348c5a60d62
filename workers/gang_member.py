"""What runs on a worker for one member of a gang: take up the lease, connect the mesh, train, report.

A report always comes back, also of an error. Errors are carried, not raised, so that the driver can weigh all
members' reports against each other, and so that Dask does not log a task's arguments.
"""

import pickle
import pkgutil
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from distributed import get_worker, secede

from boost_core.collective import Collective
from workers.job import Assignment, MemberOutcome, Progress
from workers.lease import Lease, LeaseBook
from workers.mesh import Deadlines, Member, MeshCollective
from workers.plugin import plugin_of
from workers.relay import MemberProgress
from workers.roster import Roster
from workers.shelf import in_use

MemberFunction = Callable[[Assignment, Collective, Progress], MemberOutcome]


@dataclass(frozen=True)
class Ticket:
    """All that a member needs. function: where to import what it runs, "module:name".

    key: the Dask key of its task. topic: where the member of rank 0 publishes the progress.
    """

    assignment: Assignment
    roster: Roster
    deadlines: Deadlines
    connect_seconds: float
    function: str
    key: str
    topic: str


@dataclass(frozen=True)
class Failure:
    """A member's error: its text with the type's name, its traceback, and itself if it can be pickled."""

    text: str
    trace: str
    pickled: bytes | None

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Describe an error so that it survives the way to the driver, whatever it is."""
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)
        except Exception:
            pickled = None  # it holds something that cannot travel, or cannot be made from its arguments
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return cls(text, "".join(traceback.format_exception(error)), pickled)

    def error(self) -> BaseException | None:
        """The error itself, where it could travel and its class is known here too."""
        with suppress(Exception):
            error = pickle.loads(self.pickled or b"")
            return error if isinstance(error, BaseException) else None
        return None


@dataclass(frozen=True)
class Report:
    """How one member ended: with an outcome or with a failure."""

    rank: int
    outcome: MemberOutcome | None = None
    failure: Failure | None = None


def train_member(ticket: Ticket) -> Report:
    """The task of one member. Holds no thread of the worker's pool: a gang may last for hours."""
    rank = ticket.assignment.rank
    try:
        worker = get_worker()
        secede()
        progress = MemberProgress(lambda message: worker.log_event(ticket.topic, message), rank)
        plugin = plugin_of(worker)
        with in_use(plugin.shelf):
            outcome = hold_lease(ticket, plugin.leases, progress)
    except BaseException as error:
        return Report(rank, failure=Failure.of(error))
    return Report(rank, outcome=outcome)


def hold_lease(ticket: Ticket, leases: LeaseBook, progress: MemberProgress) -> MemberOutcome:
    """Run the member between the begin and the end of its lease."""
    lease = leases.begin(ticket.roster.job_id, ticket.roster.run, ticket.key)
    try:
        progress.follow(lease)
        with connect(ticket, leases, lease) as collective:
            return member_function(ticket.function)(ticket.assignment, collective, progress)
    finally:
        progress.flush()
        leases.end(lease)


def connect(ticket: Ticket, leases: LeaseBook, lease: Lease) -> MeshCollective:
    """The member's end of the mesh, which whoever ends the lease can break."""
    rank, roster = ticket.assignment.rank, ticket.roster
    links = lease.endpoint.connect(roster, rank, ticket.connect_seconds)
    collective = MeshCollective(Member(roster.job_id, roster.run, rank), links, ticket.deadlines)
    try:
        leases.on_abort(lease, collective.abort)
    except BaseException:
        collective.close()
        raise
    return collective


def member_function(path: str) -> MemberFunction:
    """Import what members run. Errors: ImportError, AttributeError, ValueError name the path."""
    function: MemberFunction = pkgutil.resolve_name(path)
    return function
