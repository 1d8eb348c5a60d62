"""The header in front of every message between members: which job, run, round and step it belongs to.

    magic  version  kind  dtype  narrow  run  round  step   job (digest)   n_rows   n_bytes
    4s     B        B     B      B       I    I      I      16s            Q        Q

Little-endian, 52 bytes. A receiver knows all fields but narrow and the last two beforehand, so a message left over
from another job, run, round or step is told apart before one of its payload bytes is used. narrow: 1 where int64
values travel as int32.
"""

import enum
import hashlib
import struct
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike

from boost_core.errors import CollectiveError, StaleMessage

MAGIC = b"EDGW"
VERSION = 2
HEADER = struct.Struct("<4sBBBBIII16sQQ")
DTYPES = tuple(map(np.dtype, ("<i8", "<f8", "<i4", "<u8", "<u4", "<f4", "<i2", "<u2", "i1", "u1", "?")))
DTYPE_CODES = {dtype: code for code, dtype in enumerate(DTYPES)}


class Kind(enum.IntEnum):
    """What the members do together when they exchange a message."""

    SUM = 1
    MAX = 2
    REDUCE_SCATTER = 3
    ALL_GATHER = 4
    BARRIER = 5
    ALL_TO_ALL = 6


class RunEnded(CollectiveError):
    """Somebody outside ended this member's run, for the reason given."""


KINDS = {kind.value for kind in Kind}


def job_digest(job_id: str) -> bytes:
    """16 bytes that stand for a job's id on the wire."""
    return hashlib.blake2b(job_id.encode(), digest_size=16).digest()


def dtype_code(dtype: DTypeLike) -> int:
    """The byte that stands for a dtype. Errors: CollectiveError names a dtype that cannot travel."""
    code = DTYPE_CODES.get(np.dtype(dtype))
    if code is None:
        names = ", ".join(map(str, DTYPES))
        raise CollectiveError(f"arrays of {np.dtype(dtype)} cannot be sent to members; use one of {names}")
    return code


class Place(NamedTuple):
    """Where in a gang's life a message belongs. `job` is the digest of the job's id."""

    job: bytes
    run: int
    round: int
    step: int

    def __str__(self) -> str:
        return f"(job {self.job.hex()[:8]}, run {self.run}, round {self.round}, step {self.step})"


class Header(NamedTuple):
    """One message's description. n_rows is the array's length along axis 0; n_bytes that of the payload; narrow
    whether its int64 values travel as int32."""

    place: Place
    kind: int
    dtype: int
    n_rows: int
    n_bytes: int
    narrow: bool = False

    def pack(self) -> bytes:
        """The header's bytes."""
        job, run, number, step = self.place
        described = (self.kind, self.dtype, self.narrow)
        return HEADER.pack(MAGIC, VERSION, *described, run, number, step, job, self.n_rows, self.n_bytes)

    @classmethod
    def unpack(cls, data: bytes | bytearray | memoryview) -> Self:
        """Read a header. Errors: CollectiveError if the bytes are no header of this version."""
        magic, version, kind, dtype, narrow, run, number, step, job, n_rows, n_bytes = HEADER.unpack(data)
        if magic != MAGIC or version != VERSION:
            raise CollectiveError(
                f"not a message of this protocol: begins with {magic!r} version {version}, "
                f"expected {MAGIC!r} version {VERSION}; run the same release of edgewise on all workers"
            )
        return cls(Place(job, run, number, step), kind, dtype, n_rows, n_bytes, narrow != 0)


def check_place(expected: Place, got: Place, sender: str) -> None:
    """Errors: StaleMessage, naming both places, if a message belongs elsewhere."""
    if got != expected:
        raise StaleMessage(f"{sender} sent a message of {got}, expected {expected}")


def check_kind(expected: Header, got: Header, sender: str) -> None:
    """Errors: CollectiveError if the members call different operations or send different dtypes."""
    if got.kind != expected.kind or got.dtype != expected.dtype:
        raise CollectiveError(
            f"{sender} sent {describe(got)} at {got.place} where this member expected {describe(expected)}: "
            "the members no longer run the same program"
        )


def describe(header: Header) -> str:
    """What kind of message a header announces, for error messages."""
    kind = Kind(header.kind).name.lower() if header.kind in KINDS else f"kind {header.kind}"
    dtype = DTYPES[header.dtype] if header.dtype < len(DTYPES) else f"dtype {header.dtype}"
    return f"{header.n_rows} rows of {dtype} ({header.n_bytes} bytes) for {kind}"
