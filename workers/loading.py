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
from boost_core.label_sets import label_mass, usable
from boost_core.replay import bring_to
from boost_core.row_weights import class_mass, copies_of, total_mass
from boost_core.scores import Scores
from boost_core.shard import RowRange, Shard, numbers_in
from boost_core.start import ModelSoFar, Standing, Start, no_standing
from boost_core.team import Team
from boost_core.training import LN_TOLERANCE
from boost_core.training_data import TrainingData
from boost_core.warm_start import model_so_far, refuse_other_bins
from workers.binner import Binner, Work, bin_stored
from workers.checkpoint import Checkpoint, check_fingerprints, facts_of, from_bytes
from workers.data_plan import TableRows
from workers.errors import DataError
from workers.job import Assignment
from workers.label_columns import LABEL
from workers.reading import LABELLING, RangeReader
from workers.shelf import Kept, Shelf
from workers.weight_column import positive

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
        binner = Binner(self.assignment, self.collective, self.team, self.clock)
        with RangeReader(plan.train, self.assignment.train_ranges, self.team) as rows:
            train, labelling = self._unlabelled(rows, self.assignment.train_ranges)
            if plan.valid is None:
                valid = None
                binned = binner.run(rows, None, train.row_numbers, labelling)
            else:
                with RangeReader(plan.valid, self.assignment.valid_ranges, self.team) as valid_rows:
                    valid, more = self._unlabelled(valid_rows, self.assignment.valid_ranges)
                    binned = binner.run(rows, valid_rows, train.row_numbers, [*labelling, *more])
                    valid = replace(valid, bins=binned.valid)
        train = replace(train, bins=binned.train)
        base = self._agreed(train, valid, binned.binning)
        return self._kept(train, valid, base, Start(self._warm_start(binned.binning)))

    def _warm_start(self, binning: Binning) -> ModelSoFar:
        """Errors: ConfigError if the rows are not binned as the model's were."""
        model = self.assignment.job.warm_start
        if model is None:
            return NOTHING
        refuse_other_bins(model, binning)
        return model_so_far(model, LN_TOLERANCE)

    def _agreed(self, train: Shard, valid: Shard | None, binning: Binning) -> Checkpoint:
        """What all members' rows come to. Errors: DataError if none is left."""
        job = self.assignment.job
        if train.sets is None:
            counts = class_mass(train.labels, train.copies, len(job.plan.classes))
        else:
            counts = label_mass(train.sets, train.copies)
        n_valid = total_mass(valid.n_rows, valid.copies) if valid else 0
        parts = [train.n_rows, total_mass(train.n_rows, train.copies), n_valid]
        agreed = self.collective.sum(np.concatenate([counts, parts, signed(prints_of(train, valid, self.team))]))
        n_rows, n_train, n_valid = (int(total) for total in agreed[-5:-2])
        if n_rows == 0 or (valid is not None and n_valid == 0):
            rows = "training" if n_rows == 0 else "validation"
            raise DataError(LABEL, f"no {rows} row has both a label and a label that it lacks: nothing can be ranked")
        return Checkpoint(
            config=job.config,
            facts=facts_of(job.plan),
            binning=binning,
            class_counts=agreed[:-5],
            n_rows=n_rows,
            n_train=n_train,
            n_valid=n_valid,
            fingerprints=unsigned(agreed[-2:]),
            model=NOTHING,
            round_seconds=(),
        )

    def _unbinned(self, rows: RangeReader, ranges: tuple[RowRange, ...]) -> Shard:
        """Rows without bins, as `_unlabelled`."""
        shard, labelling = self._unlabelled(rows, ranges)
        self.team.each(labelling, LABELLING * shard.n_rows)
        return shard

    def _unlabelled(self, rows: RangeReader, ranges: tuple[RowRange, ...]) -> tuple[Shard, list[Work]]:
        """Rows without bins, and what has still to be done for their labels, while `rows` are open. Left out from here
        on are those of weight 0, and label sets that the algorithm cannot learn from. All members call it at the same
        time."""
        plan, algorithm = self.assignment.job.plan, self.assignment.job.config.algorithm.name
        kept = np.ones(sum(stop - start for start, stop in ranges), np.bool_)
        if plan.weight is not None:
            kept = positive(rows.floats([plan.weight])[0])
            rows.keep(kept)
        sets, labelling = None, list[Work]()
        if plan.multi_label:
            sets = rows.label_sets(plan.label, plan.classes)
            fit = usable(sets, algorithm)
            rows.keep(fit)
            kept[kept] = fit
            sets, labels = sets[fit], np.zeros(int(fit.sum()), np.int32)
        elif kept.all():
            labels, labelling = rows.labelling(str(plan.label), plan.classes)
        else:
            labels = rows.class_indices(str(plan.label), plan.classes)
        # read again, of the rows that are left
        copies = None if plan.weight is None else copies_of(rows.floats([plan.weight])[0], self.collective)
        numbers = None if kept.all() else numbers_in(ranges)[kept]
        return Shard(np.empty((0, 0), np.uint8), labels, ranges, copies, numbers, sets), labelling

    # A later run.

    def _fits(self, old: Kept) -> bool:
        """Whether what is kept is the beginning of what is asked for: a survivor keeps its ranges."""
        valid = old.data.valid.row_ranges if old.data.valid else ()
        return begins(self.assignment.train_ranges, old.data.train.row_ranges) and begins(
            self.assignment.valid_ranges, valid
        )

    def _again(self, base: Checkpoint, old: Kept | None) -> Kept:
        plan, held = self.assignment.job.plan, old.data if old else None
        train, train_came = self._completed(
            plan.train, self.assignment.train_ranges, held.train if held else None, base.binning
        )
        valid, valid_came = None, None
        if plan.valid is not None:
            ranges = self.assignment.valid_ranges
            valid, valid_came = self._completed(plan.valid, ranges, held.valid if held else None, base.binning)
        standing = None
        if held is not None and old is not None and old.start.standing is not None:
            standing = self._joined(old.start.standing, held, (train_came, valid_came), base)
        found = unsigned(self.collective.sum(signed(prints_of(train, valid, self.team))))
        check_fingerprints(base, found)
        return self._kept(train, valid, base, Start(base.model, standing))

    def _completed(
        self, table: TableRows, ranges: tuple[RowRange, ...], held: Shard | None, binning: Binning
    ) -> tuple[Shard, Shard]:
        """All rows of the ranges, and those of them that are not held. All members call it at the same time.

        Labels and weights are read of all rows: the unit of all weights depends on all of them.
        """
        plan, first = self.assignment.job.plan, len(held.row_ranges) if held else 0
        self.clock("read")
        with RangeReader(table, ranges, self.team) as all_rows:
            whole = self._unbinned(all_rows, ranges)
        n_held = held.n_rows if held else 0
        moved = numbers_in(ranges[first:])
        with RangeReader(table, ranges[first:], self.team) as rows:
            rows.keep(np.isin(moved, whole.row_numbers()[n_held:]))
            bins = bin_stored(rows, plan.features, binning, self.team, self.clock)
        came = Shard(bins, whole.labels[n_held:], ranges[first:])
        if held is not None:
            bins = np.concatenate([held.bins, bins], axis=1) if came.n_rows else held.bins
        return replace(whole, bins=bins), came

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

    def _kept(self, train: Shard, valid: Shard | None, base: Checkpoint, start: Start) -> Kept:
        data = TrainingData(train, valid, base.binning, base.class_counts, base.n_valid, base.n_train)
        return Kept(self.assignment.job.fence, data, base, start)


def begins(whole: tuple[RowRange, ...], first: tuple[RowRange, ...]) -> bool:
    """Whether `whole` starts with `first`."""
    return whole[: len(first)] == first


def _stacked(first: Scores, second: Scores) -> Scores:
    """Scores of both; int64 if either is, which is the same numbers."""
    return Scores(np.concatenate([first.values, second.values]), max(first.reach, second.reach))


def prints_of(train: Shard, valid: Shard | None, team: Team) -> tuple[int, int]:
    """This member's parts of the fingerprints of the training and the validation rows."""
    first, second = (
        fingerprint(each.bins, each.labels, each.row_numbers, each.copies, each.sets, team) if each else 0
        for each in (train, valid)
    )
    return first, second


def signed(prints: tuple[int, int]) -> NDArray[np.int64]:
    """Fingerprints as sums take them: additions wrap around alike."""
    return np.array(prints, np.uint64).view(np.int64)


def unsigned(sums: NDArray[np.int64]) -> tuple[int, int]:
    """The inverse of `signed`."""
    first, second = np.ascontiguousarray(sums).view(np.uint64)
    return int(first), int(second)
