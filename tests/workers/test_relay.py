"""Progress on its way to the driver: batched, in order, each round once."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.workers.gang_members import record
from workers import relay
from workers.job import RoundProgress
from workers.relay import MemberProgress, Receiver


class Follower:
    def __init__(self) -> None:
        self.phases: list[str] = []
        self.batches: list[list[int]] = []

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
        self.batches.append([each.record.round for each in batch])

    def cancel_requested(self) -> bool:
        return False


def rounds(*numbers: int) -> list[RoundProgress]:
    return [RoundProgress(record(number), number / 1000, number / 4000, known=number == 1) for number in numbers]


def relayed(*calls: tuple[str, Any], rank: int = 0) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    member = MemberProgress(messages.append, rank)
    for name, argument in calls:
        getattr(member, name)(argument)
    member.flush()
    return messages


def test_what_a_member_says_arrives_as_it_was() -> None:
    seen: list[RoundProgress] = []
    follower = Follower()
    follower.rounds_done = seen.extend  # type: ignore[method-assign]
    receiver = Receiver(follower)
    for message in relayed(("phase", "read"), ("rounds_done", rounds(1, 2)), ("phase", "train")):
        receiver.receive(message)
    assert follower.phases == ["read", "train"]
    assert seen == rounds(1, 2)
    assert (receiver.phase, receiver.last_round) == ("train", 2)


def test_rounds_go_out_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still after the first batch, so that all later rounds wait for the flush."""
    monkeypatch.setattr(relay.time, "monotonic", lambda: 1000.0)
    messages = relayed(*[("rounds_done", rounds(number)) for number in range(1, 100)])
    assert [len(message["rounds"]) for message in messages] == [1, 98]


def test_only_rank_0_speaks() -> None:
    assert relayed(("phase", "read"), ("rounds_done", rounds(1)), rank=1) == []


def test_repeated_and_disordered_rounds_are_handed_on_once_in_order() -> None:
    follower = Follower()
    receiver = Receiver(follower)
    receiver.rounds(rounds(2, 1))
    receiver.rounds(rounds(1, 2))
    receiver.rounds(rounds(2, 3, 4))
    receiver.rounds([])
    assert follower.batches == [[1, 2], [3, 4]]


def test_the_outcome_fills_in_what_was_lost() -> None:
    follower = Follower()
    receiver = Receiver(follower)
    receiver.rounds(rounds(1))
    receiver.rounds(rounds(1, 2, 3))
    assert follower.batches == [[1], [2, 3]]
