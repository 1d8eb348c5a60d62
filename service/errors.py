"""Errors of the service, and the one table that gives every error its HTTP status and exit code.

ServiceError
├── RequestRefused          the request asks for something wrong; `problems` says where and what
│   └── MemoryShort         no worker has the memory that the job needs
├── MalformedBody           the body is not JSON
├── UnsupportedMedia        the body is of a media type that is not read here
├── BodyTooLarge            the body has more bytes than allowed
├── TooManyRows             one prediction request has more rows than allowed
├── NotFound                nothing has that address
│   ├── JobNotFound
│   ├── KeyNotFound
│   └── ModelNotFound       also a version of a model
├── KeyUnknown              the call needs an API key and has none that is in force
├── ScopeMissing            the call's API key does not allow it
├── Conflict                the request contradicts what is stored
│   ├── KeyReused           an Idempotency-Key came back with another request
│   └── WrongState          the job's state does not allow it
├── ArtifactGone            a registered model's file is missing or is not the one that was registered
├── StoreUnavailable        the job store's database does not answer
├── LeaseLost               another run of the job took over: this runner may write nothing more
├── Interrupted             the user stopped a command
└── StartRefused            the settings are wrong, or another server uses the same state

The errors of workers (DataError, ...) and of boost_core (ConfigError, ...) pass through the same table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boost_core.errors import BoostError, ConfigError
from workers.errors import (
    CheckpointRefused,
    CheckpointsUnavailable,
    DataError,
    DataNotFound,
    ModelFileError,
    PathRefused,
    TrainingFailed,
    WorkersError,
)

Location = tuple[str | int, ...]
Problem = tuple[Location, str]


class ServiceError(Exception):
    """Base of every error that the service raises on purpose; its text is meant for the caller."""


class RequestRefused(ServiceError):
    """One or more parts of a request are wrong. A location is a tuple of keys into the request."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{'.'.join(map(str, loc))}: {message}" for loc, message in problems))


class MemoryShort(RequestRefused):
    """No worker has the memory. needed_bytes: on each worker; workers_needed: of the largest's size, None = no number
    would do."""

    def __init__(self, message: str, needed_bytes: int, largest_bytes: int, workers_needed: int | None) -> None:
        self.needed_bytes, self.largest_bytes, self.workers_needed = needed_bytes, largest_bytes, workers_needed
        super().__init__([(("resources", "workers"), message)])


class MalformedBody(ServiceError):
    """The body cannot be read as JSON."""


class UnsupportedMedia(ServiceError):
    """The body's media type is not one that the call reads."""


class BodyTooLarge(ServiceError):
    """The body has more bytes than the server accepts."""


class TooManyRows(ServiceError):
    """A prediction request has more rows than the server accepts at once."""


class NotFound(ServiceError):
    """Nothing has that address."""


class JobNotFound(NotFound):
    """No job has that id."""


class KeyNotFound(NotFound):
    """No API key has that id."""


class KeyUnknown(ServiceError):
    """The call needs an API key, and the one it has is missing, wrong or revoked."""


class ScopeMissing(ServiceError):
    """The call's API key is in force, but not for this."""


class ModelNotFound(NotFound):
    """No model has that name, or it has no such version."""


class Conflict(ServiceError):
    """The request contradicts what is stored."""


class KeyReused(Conflict):
    """An Idempotency-Key names one request for ever; this one is another."""


class WrongState(Conflict):
    """The state of the job does not allow what was asked."""


class ArtifactGone(ServiceError):
    """A registered model's file is missing, or its content is not what was registered."""


class StoreUnavailable(ServiceError):
    """The job store's database does not answer now; the same call may succeed soon."""


class LeaseLost(ServiceError):
    """The job belongs to another run by now."""


class Interrupted(ServiceError):
    """The user stopped the command."""


class StartRefused(ServiceError):
    """The service cannot start as it is set up."""


@dataclass(frozen=True)
class Rule:
    """What an error means outside: the HTTP status, the problem's type and title, the command's exit code."""

    status: int
    slug: str
    title: str
    exit_code: int

    @property
    def type(self) -> str:
        """The URI that names the problem's type (RFC 9457, 3.1.1)."""
        return f"urn:edgewise:problem:{self.slug}"


# The row of the nearest base class counts. Data problems are found while a request is read, before anything
# is queued, so they are the request's fault over HTTP (4xx); a command tells them apart by exit code 3.
RULES: Mapping[type[BaseException], Rule] = {
    RequestRefused: Rule(422, "request-refused", "The request is refused", 2),
    MemoryShort: Rule(422, "memory-short", "No worker has the memory that the job needs", 2),
    ConfigError: Rule(422, "request-refused", "The request is refused", 2),
    DataError: Rule(422, "data-refused", "The data are refused", 3),
    DataNotFound: Rule(422, "data-not-found", "The data do not exist", 3),
    PathRefused: Rule(422, "path-refused", "The path is refused", 3),
    MalformedBody: Rule(400, "malformed-body", "The body is not JSON", 2),
    UnsupportedMedia: Rule(415, "unsupported-media", "The body's media type is not supported", 2),
    BodyTooLarge: Rule(413, "body-too-large", "The body is too large", 2),
    TooManyRows: Rule(413, "too-many-rows", "The request has too many rows", 2),
    KeyUnknown: Rule(401, "key-unknown", "An API key is needed", 2),
    ScopeMissing: Rule(403, "scope-missing", "The API key does not allow it", 2),
    NotFound: Rule(404, "not-found", "Not found", 2),
    Conflict: Rule(409, "conflict", "The request contradicts what is stored", 2),
    ModelFileError: Rule(422, "model-file-refused", "The model file is refused", 2),
    CheckpointRefused: Rule(409, "checkpoint-refused", "The checkpoint belongs to another training", 2),
    CheckpointsUnavailable: Rule(503, "checkpoints-unavailable", "The checkpoints cannot be reached", 4),
    TrainingFailed: Rule(500, "training-failed", "Training failed", 4),
    BoostError: Rule(500, "training-failed", "Training failed", 4),
    WorkersError: Rule(500, "workers-failed", "The workers failed", 4),
    ArtifactGone: Rule(503, "artifact-gone", "The model's file cannot be used", 4),
    StoreUnavailable: Rule(503, "store-unavailable", "The job store does not answer", 4),
    LeaseLost: Rule(409, "lease-lost", "The job belongs to another run", 4),
    Interrupted: Rule(499, "interrupted", "Interrupted", 130),
    StartRefused: Rule(503, "start-refused", "The service cannot start", 2),
    ServiceError: Rule(500, "internal", "The server failed", 1),
    BaseException: Rule(500, "internal", "The server failed", 1),
}


def rule_for(error: BaseException) -> Rule:
    """The row of an error: that of its nearest base class in the table."""
    return next(RULES[base] for base in type(error).__mro__ if base in RULES)


def is_deliberate(error: BaseException) -> bool:
    """Whether the error's text was written for the caller; any other text may leak what is inside."""
    return isinstance(error, (ServiceError, WorkersError, BoostError))


def problems_of(error: BaseException) -> tuple[Problem, ...]:
    """Every (location, message) an error names; empty when it names no place."""
    if isinstance(error, (RequestRefused, ConfigError)):
        return tuple(error.problems)
    if isinstance(error, DataError):
        return ((tuple(error.loc), error.message),)
    return ()
