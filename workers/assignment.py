"""Which member of a gang holds which rows. The model does not depend on it."""

import random
from collections.abc import Collection, Sequence

from boost_core.shard import RowRange
from workers.job import Assignment, TrainingJob

PIECES = 4  # ranges a member gets when the assignment is shuffled


def even_ranges(n_rows: int, parts: int) -> list[RowRange]:
    """range(n_rows) in contiguous parts of about equal size; some are empty if there are more parts than rows."""
    edges = [n_rows * part // parts for part in range(parts + 1)]
    return [(edges[part], edges[part + 1]) for part in range(parts)]


def assign_ranges(
    n_rows: int, size: int, shuffle_seed: int | None = None, idle: Collection[int] = ()
) -> list[tuple[RowRange, ...]]:
    """Row ranges of each member. shuffle_seed: several ranges each, dealt at random; idle: ranks that get no rows."""
    holders = [rank for rank in range(size) if rank not in idle]
    dealt: list[list[RowRange]] = [[] for _ in range(size)]
    pieces = even_ranges(n_rows, len(holders) * (1 if shuffle_seed is None else PIECES))
    if shuffle_seed is not None:
        random.Random(shuffle_seed).shuffle(pieces)
    for place, piece in enumerate(pieces):
        if piece[0] < piece[1]:
            dealt[holders[place % len(holders)]].append(piece)
    return [tuple(ranges) for ranges in dealt]


def assign(
    job: TrainingJob, threads: list[int], shuffle_seed: int | None = None, idle: Collection[int] = ()
) -> list[Assignment]:
    """One assignment a member; threads: of each member, where the job does not say."""
    size = len(threads)
    train = assign_ranges(job.plan.train.n_rows, size, shuffle_seed, idle)
    n_valid = job.plan.valid.n_rows if job.plan.valid else 0
    valid = assign_ranges(n_valid, size, shuffle_seed, idle)
    return [Assignment(job, rank, size, job.threads or threads[rank], train[rank], valid[rank]) for rank in range(size)]


def lost_ranges(n_rows: int, kept: Sequence[Sequence[RowRange]]) -> list[RowRange]:
    """What is left of range(n_rows) when disjoint ranges are taken out."""
    lost, at = [], 0
    for start, stop in sorted(each for ranges in kept for each in ranges):
        if at < start:
            lost.append((at, start))
        at = max(at, stop)
    return [*lost, (at, n_rows)] if at < n_rows else lost


def top_up(n_rows: int, kept: Sequence[tuple[RowRange, ...]]) -> list[tuple[RowRange, ...]]:
    """All rows dealt so that every member keeps its ranges, first, and those with the fewest rows get what was lost."""
    lost = lost_ranges(n_rows, kept)
    dealt = [list(ranges) for ranges in kept]
    held = [sum(stop - start for start, stop in ranges) for ranges in kept]
    shares = _shares(held, sum(stop - start for start, stop in lost))
    rank = 0
    for start, stop in lost:
        at = start
        while at < stop:
            taken = min(shares[rank], stop - at)
            if taken:
                dealt[rank].append((at, at + taken))
            at += taken
            shares[rank] -= taken
            rank += shares[rank] == 0 and at < stop
    return [tuple(ranges) for ranges in dealt]


def _shares(held: Sequence[int], rows: int) -> list[int]:
    """How many more rows each gets, so that the least loaded come as near to the others as the rows allow."""
    order = sorted(range(len(held)), key=lambda rank: (held[rank], rank))
    level, n_filled, left = held[order[0]], 1, rows
    while n_filled < len(order) and (held[order[n_filled]] - level) * n_filled <= left:
        left -= (held[order[n_filled]] - level) * n_filled
        level = held[order[n_filled]]
        n_filled += 1
    extra, odd = divmod(left, n_filled)
    shares = [0] * len(held)
    for place, rank in enumerate(order[:n_filled]):
        shares[rank] = level - held[rank] + extra + (place < odd)
    return shares


Holdings = tuple[tuple[RowRange, ...], tuple[RowRange, ...]]  # training and validation rows


def reassign(job: TrainingJob, threads: list[int], held: Sequence[Holdings]) -> list[Assignment]:
    """One assignment a member; held: by rank, what it still has and keeps (nothing: a new one)."""
    train = top_up(job.plan.train.n_rows, [each[0] for each in held])
    valid = top_up(job.plan.valid.n_rows if job.plan.valid else 0, [each[1] for each in held])
    size = len(threads)
    return [Assignment(job, rank, size, job.threads or threads[rank], train[rank], valid[rank]) for rank in range(size)]
