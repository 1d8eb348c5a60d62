"""Errors of the engine.

BoostError
├── ConfigError          the request asks for something that does not exist or does not combine
├── BoundBroken          a proved bound did not hold: the run is wrong and must not give a model
└── CollectiveError      the members of a gang can no longer work together
    ├── MemberLost       a member's connection is gone
    ├── DeadlinePassed   a member did not answer in time
    ├── StaleMessage     a message of another job, run, round or step arrived
    ├── RunEnded         (workers/messages.py) a member says that its run is over
    └── LeaseRefused     (workers/lease.py) the worker belongs to another gang, or the run is an old one
"""

from collections.abc import Sequence


class BoostError(Exception):
    """Base of every error the engine raises on purpose."""


class ConfigError(BoostError):
    """One or more parts of a training configuration are refused.

    `problems` holds (location, message) pairs; a location is a tuple of keys into the request body.
    """

    def __init__(self, problems: Sequence[tuple[tuple[str | int, ...], str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{'.'.join(map(str, loc))}: {message}" for loc, message in problems))

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[tuple[tuple[tuple[str | int, ...], str], ...]]]:
        """Survives the way from a worker: exceptions are pickled by their arguments."""
        return type(self), (self.problems,)


class BoundBroken(BoostError):
    """The measured loss or error of a round exceeds what the theory proves for it."""


class CollectiveError(BoostError):
    """The gang cannot go on: its members cannot exchange their sums."""


class MemberLost(CollectiveError):
    """A member's connection ended before it should."""


class DeadlinePassed(CollectiveError):
    """A member did not answer before the deadline."""


class StaleMessage(CollectiveError):
    """A message belongs to another job, run, round or step than the one expected."""
