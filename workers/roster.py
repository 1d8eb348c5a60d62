"""Who trains together: the members' addresses by rank, and the secret that proves membership."""

import hmac
import secrets
import struct
from dataclasses import dataclass, field

from workers.messages import job_digest

MAGIC = b"EDGH\x01"
HELLO = struct.Struct("<5s3xIII16s32s")  # magic, run, caller's rank, listener's rank, job digest, nonce
NONCE_BYTES = 32
PROOF_BYTES = 32
WELCOME = b"\x06"


@dataclass(frozen=True)
class Seat:
    """Where a member listens, and the name of its worker for error messages."""

    host: str
    port: int
    worker: str = ""


@dataclass(frozen=True)
class Roster:
    """The members of one run, by rank, and the secret that only they know."""

    job_id: str
    run: int
    seats: tuple[Seat, ...]
    secret: bytes = field(repr=False)

    def name(self, rank: int) -> str:
        """What to call a member in errors: its rank and its worker's address."""
        seat = self.seats[rank]
        return f"member {rank} ({seat.worker or f'{seat.host}:{seat.port}'})"

    def hello(self, caller: int, listener: int, nonce: bytes) -> bytes:
        """What a caller says first."""
        return HELLO.pack(MAGIC, self.run, caller, listener, job_digest(self.job_id), nonce)

    def proof(self, role: bytes, hello: bytes, nonce: bytes) -> bytes:
        """What only a holder of the secret can answer to a hello and the listener's nonce."""
        return hmac.digest(self.secret, role + hello + nonce, "sha256")


def new_secret() -> bytes:
    """A secret for one run."""
    return secrets.token_bytes(32)
