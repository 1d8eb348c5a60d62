"""Which member of a gang holds which rows. The model does not depend on it."""

import random
from collections.abc import Collection

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
