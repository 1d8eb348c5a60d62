"""How a member comes to its rows: read and binned together with all others, taken from its shelf, or restored.

    first run     read -> thresholds agreed by all -> bins
    later run     what is on the shelf, as it is; what is not: read -> bins by the stored thresholds

Scores follow from the rounds so far (boost_core/replay.py): only the rows that moved are replayed from round 1.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import Binning, fingerprint
from boost_core.collective import Collective
from boost_core.records import RoundRecord
from boost_core.replay import bring_to
from boost_core.scores import Scores
from boost_core.shard import RowRange, Shard
from boost_core.start import ModelSoFar, Standing, Start, no_standing
from boost_core.team import Team
from boost_core.training import LN_TOLERANCE, TrainingData
from workers.binner import Binner, bin_stored
from workers.checkpoint import Checkpoint, check_fingerprints, facts_of, from_bytes
from workers.job import Assignment
from workers.reading import RangeReader
from workers.shelf import Kept, Shelf

NOTHING = ModelSoFar((), (), (), LN_TOLERANCE, False)


@dataclass(frozen=True)
class Loader:
    """Loads one member's rows. clock: called with "read" and "bin" around the two kinds of work."""

    assignment: Assignment
    collective: Collective
    team: Team
    clock: Callable[[str], None]

    def load(self, shelf: Shelf) -> Kept:
        """The rows, and where training starts; they are on the shelf from now on.

        Errors: DataError; CheckpointRefused if the rows have changed; CheckpointDamaged.
        """
        job = self.assignment.job
        if self.assignment.resume is None:
            kept = self._first()
        else:
            base, old = from_bytes(self.assignment.resume), shelf.get(job.job_id)
            kept = self._again(base, old if old and self._fits(old) else None)
        shelf.put(job.job_id, kept)
        return kept

    # The first run.

    def _first(self) -> Kept:
        plan = self.assignment.job.plan
        with RangeReader(plan.train, self.assignment.train_ranges) as rows:
            labels = rows.class_indices(plan.label, plan.classes)
            empty = Shard(np.empty((0, 0), np.uint8), labels, self.assignment.train_ranges)
            binner = Binner(self.assignment, self.collective, self.team, self.clock)
            if plan.valid is None:
                binned = binner.run(rows, None, empty.row_numbers())
                valid = None
            else:
                with RangeReader(plan.valid, self.assignment.valid_ranges) as valid_rows:
                    valid_labels = valid_rows.class_indices(plan.label, plan.classes)
                    binned = binner.run(rows, valid_rows, empty.row_numbers())
                valid = Shard(binned.valid, valid_labels, self.assignment.valid_ranges)
        train = replace(empty, bins=binned.train)
        prints = prints_of(train, valid)
        counts = np.bincount(labels, minlength=len(plan.classes)).astype(np.int64)
        agreed = self.collective.sum(np.concatenate([counts, signed(prints)]))
        base = Checkpoint(
            self.assignment.job.config, facts_of(plan), binned.binning, agreed[:-2], unsigned(agreed[-2:]), NOTHING, ()
        )
        return self._kept(train, valid, prints, base, Start(NOTHING))

    # A later run.

    def _fits(self, old: Kept) -> bool:
        """Whether what is kept is the beginning of what is asked for: a survivor keeps its ranges."""
        valid = old.data.valid.row_ranges if old.data.valid else ()
        return begins(self.assignment.train_ranges, old.data.train.row_ranges) and begins(
            self.assignment.valid_ranges, valid
        )

    def _again(self, base: Checkpoint, old: Kept | None) -> Kept:
        plan = self.assignment.job.plan
        held = old.data if old else None
        train_ranges = self.assignment.train_ranges[len(held.train.row_ranges) if held else 0 :]
        valid_ranges = self.assignment.valid_ranges[len(held.valid.row_ranges) if held and held.valid else 0 :]
        train = self._read(plan.train, train_ranges, base.binning)
        valid = self._read(plan.valid, valid_ranges, base.binning) if plan.valid else None
        prints = prints_of(train, valid)
        standing = None
        if held is not None and old is not None:
            standing = old.start.standing
            if standing is not None:
                standing = self._joined(standing, held, (train, valid), base)
            prints = (prints[0] + old.prints[0]) % 2**64, (prints[1] + old.prints[1]) % 2**64
            train = join(held.train, train)
            valid = join(held.valid, valid) if held.valid and valid else valid
        check_fingerprints(base, unsigned(self.collective.sum(signed(prints))))
        return self._kept(train, valid, prints, base, Start(base.model, standing))

    def _read(self, table: "object", ranges: tuple[RowRange, ...], binning: Binning) -> Shard:
        plan = self.assignment.job.plan
        self.clock("read")
        with RangeReader(table, ranges) as rows:  # type: ignore[arg-type]
            labels = rows.class_indices(plan.label, plan.classes)
            names = [feature.name for feature in plan.features]
            bins = bin_stored(rows, names, binning, self.team, self.clock)
        return Shard(bins, labels, ranges)

    def _joined(
        self, standing: Standing, held: TrainingData, new: tuple[Shard, Shard | None], base: Checkpoint
    ) -> Standing | None:
        """The scores of the rows that were kept, followed by those of the rows that came."""
        if not standing.whole:
            return None
        if new[0].n_rows == 0 and (new[1] is None or new[1].n_rows == 0):
            return standing
        n_columns = standing.scores.values.shape[1]
        came = no_standing(new[0].n_rows, new[1].n_rows if new[1] else 0, n_columns)
        bring_to(standing, base.model, (held.train, held.valid), base.binning, self.team)
        bring_to(came, base.model, new, base.binning, self.team)
        scores = _stacked(standing.scores, came.scores)
        return replace(standing, scores=scores, valid_scores=_stacked(standing.valid_scores, came.valid_scores))

    def _kept(self, train: Shard, valid: Shard | None, prints: tuple[int, int], base: Checkpoint, start: Start) -> Kept:
        plan = self.assignment.job.plan
        n_valid = plan.valid.n_rows if plan.valid else 0
        data = TrainingData(train, valid, base.binning, base.class_counts, n_valid)
        return Kept(self.assignment.job.fence, data, prints, base, start)


def begins(whole: tuple[RowRange, ...], first: tuple[RowRange, ...]) -> bool:
    """Whether `whole` starts with `first`."""
    return whole[: len(first)] == first


def join(first: Shard, second: Shard) -> Shard:
    """The rows of one shard and then those of the other."""
    if second.n_rows == 0:
        return replace(first, row_ranges=(*first.row_ranges, *second.row_ranges))
    bins = np.concatenate([first.bins, second.bins], axis=1)
    return Shard(bins, np.concatenate([first.labels, second.labels]), (*first.row_ranges, *second.row_ranges))


def _stacked(first: Scores, second: Scores) -> Scores:
    """Scores of both; int64 if either is, which is the same numbers."""
    return Scores(np.concatenate([first.values, second.values]), max(first.reach, second.reach))


def prints_of(train: Shard, valid: Shard | None) -> tuple[int, int]:
    """This member's parts of the fingerprints of the training and the validation rows."""
    own = [fingerprint(each.bins, each.labels, each.row_numbers()) if each else 0 for each in (train, valid)]
    return own[0], own[1]


def signed(prints: tuple[int, int]) -> NDArray[np.int64]:
    """Fingerprints as sums take them: additions wrap around alike."""
    return np.array(prints, np.uint64).view(np.int64)


def unsigned(sums: NDArray[np.int64]) -> tuple[int, int]:
    """The inverse of `signed`."""
    first, second = np.ascontiguousarray(sums).view(np.uint64)
    return int(first), int(second)


def earlier(base: Checkpoint) -> list[tuple[RoundRecord, float]]:
    """The rounds that were trained before, with their seconds."""
    return list(zip(base.model.records, base.round_seconds, strict=True))
