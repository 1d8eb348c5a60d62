"""The way of a gang's progress: from the member of rank 0 over Dask's event log to whoever follows the job.

Messages are small dictionaries, since Dask carries nothing else there. Whatever is repeated or late on the
way, the receiver hands on every round once and in order; what is lost comes with the outcome, which has all.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boost_core.records import RoundRecord
from workers.job import Progress, RoundProgress, Warned
from workers.lease import Lease

BATCH_SECONDS = 0.25  # often enough for a moving curve, seldom enough to cost nothing

Message = dict[str, Any]


class MemberProgress:
    """What a member tells: the member of rank 0 publishes, the others only listen for a cancellation."""

    def __init__(self, publish: Callable[[Message], None], rank: int) -> None:
        self._publish = publish
        self._speaks = rank == 0
        self._lease: Lease | None = None
        self._rounds: list[RoundProgress] = []
        self._sent_at = 0.0

    def follow(self, lease: Lease) -> None:
        """Obey cancellations of this lease."""
        self._lease = lease

    def phase(self, name: str) -> None:
        self.flush()
        if self._speaks:
            self._publish({"phase": name})

    def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
        self._rounds.extend(batch)
        if time.monotonic() - self._sent_at >= BATCH_SECONDS:
            self.flush()

    def cancel_requested(self) -> bool:
        return self._lease is not None and self._lease.cancelled

    def warn(self, text: str) -> None:
        if self._speaks:
            self._publish({"warning": text})

    def flush(self) -> None:
        """Publish what is there."""
        if self._rounds and self._speaks:
            self._publish({"rounds": [[each.record.to_dict(), *figures(each)] for each in self._rounds]})
        self._rounds.clear()
        self._sent_at = time.monotonic()


class Receiver:
    """The driver's side: hands phases and rounds to a Progress, each round once and in order."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.phase = ""
        self.last_round = 0

    def receive(self, message: Mapping[str, Any]) -> None:
        """Hand on what a message holds that is new."""
        if "phase" in message:
            self.phase = message["phase"]
            self._progress.phase(self.phase)
        if "warning" in message:
            self.warn(message["warning"])
        self.rounds(
            [RoundProgress(RoundRecord.from_dict(record), *rest) for record, *rest in message.get("rounds", ())]
        )

    def warn(self, text: str) -> None:
        """Hand on a warning to a follower that wants some."""
        if isinstance(self._progress, Warned):
            self._progress.warn(text)

    def rounds(self, batch: Sequence[RoundProgress]) -> None:
        """Hand on those rounds of a batch that were not handed on before."""
        new = sorted((each for each in batch if each.record.round > self.last_round), key=round_number)
        if new:
            self.last_round = round_number(new[-1])
            self._progress.rounds_done(new)


def figures(progress: RoundProgress) -> tuple[float, float, bool, Mapping[str, float] | None]:
    """What travels beside a round's record."""
    return progress.seconds, progress.reduction_seconds, progress.known, progress.stages


def round_number(progress: RoundProgress) -> int:
    return progress.record.round
