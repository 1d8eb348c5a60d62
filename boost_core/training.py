"""The one boosting loop, run by every member of a gang on its own shard (SPMD).

    scores --peaks--> gain matrix --totals--> weak learner --value--> step --> scores
               ^ max over members   ^ sum        ^ histograms and winners

Sums are exact integers, so every member picks the same weak learner and holds the same model: no member is special.
A round's loss is that of the scores it leaves, so it is recorded when the next gain matrix is known.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Algorithm, Decoded, Gains, MaybeSparse, Redraws, Step
from boost_core.bounds import LARGEST_LN, check_bounds
from boost_core.calibration import best_temperature
from boost_core.catalogue import ALGORITHMS, WEAK_LEARNERS, refuse_classes, refuse_missing_validation
from boost_core.collective import Collective, max_and_sums
from boost_core.condition_report import ConditionMeter
from boost_core.conditions import Conditions
from boost_core.config import TrainingConfig
from boost_core.decoding import plain_decoding
from boost_core.fitted import Fitted
from boost_core.forest import make_forest
from boost_core.gain_matrix import channel_sums
from boost_core.growth import Grower
from boost_core.label_sets import judges, refuse_label_sets
from boost_core.log_loss import LogLoss
from boost_core.look import Look, Seen
from boost_core.majority import constant_model
from boost_core.margin_report import MarginReport, margin_report, reach_of
from boost_core.probability import Transform, offset_of
from boost_core.records import Observer, Phase, RoundRecord, StopReason
from boost_core.replay import add_round, bring_to, remind, replay, route_round
from boost_core.sampling import Sampler
from boost_core.scores import Scores, zero_scores
from boost_core.shard import Shard
from boost_core.shrinking import shrink
from boost_core.sparse_scores import zero_sparse_scores
from boost_core.start import Keeps, ModelSoFar, Standing, Start
from boost_core.stopping import LOG_LOSS, BestRound
from boost_core.stretch import Passed, Patient, Stretches, stretches_of
from boost_core.team import Team
from boost_core.training_data import TrainingData, by_class, problem_of
from boost_core.training_result import TrainingResult

__all__ = ["LN_TOLERANCE", "TrainingResult", "train"]
Integers = NDArray[np.int64]
# How far ln loss may move from its bound in a round by rounding, besides what a step's own slack says.
LN_TOLERANCE = 1e-7


def train(
    data: TrainingData,
    config: TrainingConfig,
    collective: Collective,
    observer: Observer,
    team: Team,
    start: Start | None = None,
) -> TrainingResult:
    """Boost for config.rounds rounds in all or until there is nothing to gain, from `start` on.

    A start gives the model that an undisturbed training gives, to the bit; all members start from equal models. An
    observer that Keeps is shown the model so far after every round, or after several that were run together.

    Errors: ConfigError (the algorithm cannot learn these classes), BoundBroken, CollectiveError.
    """
    refuse_classes(config, int(data.class_counts.shape[0]))
    if data.train.sets is not None:
        refuse_label_sets(config)
    refuse_missing_validation(config, data.n_valid > 0)
    loop = _Loop(by_class(data, config, collective), config, collective, observer, team)
    return loop.run(start or Start())


@dataclass
class _Loop:
    """State of a run on one member; it changes only at the end of a round."""

    data: TrainingData
    config: TrainingConfig
    collective: Collective
    observer: Observer
    team: Team
    records: list[RoundRecord] = field(default_factory=list)
    ln_bound: float = 0.0
    slack: float = LN_TOLERANCE
    perfect: bool = False  # the last weak learner made no error

    def __post_init__(self) -> None:
        shard, binning = self.data.train, self.data.binning
        grower = Grower(shard, binning, self.collective, self.team)
        problem = problem_of(self.data, self.config, self.collective, self.team)
        choice = self.config.algorithm
        self.shrinkage = float(choice.parameters.get("shrinkage", 1.0))
        self.algorithm: Algorithm = ALGORITHMS[choice.name](problem, choice.parameters)
        self.keeper = self.observer if isinstance(self.observer, Keeps) else None
        own = self.algorithm.decoding if isinstance(self.algorithm, Decoded) else None
        self.decoding = own or plain_decoding(self.algorithm.n_columns, shard.sets is not None)
        self.judge, self.wholes = judges(choice.name, self.data, self.decoding, self.collective)
        self.meter = ConditionMeter(self.config.conditions, shard.labels, self.collective, self.team)
        self.weak_learner = WEAK_LEARNERS[self.config.weak_learner.name](grower, self.config.weak_learner.parameters)
        self.sampler = Sampler(choice.parameters, self.config.seed, shard, grower)
        self.best = BestRound(self.config.stopping)
        n_classes = int(self.data.class_counts.shape[0])
        self.transform = Transform(self.algorithm.link, offset_of(choice.parameters, n_classes))
        self.log_loss = LogLoss(self.transform, self.decoding, n_classes, self.data.n_valid)
        self.ln_bound = self.algorithm.ln_initial
        self.standing = Standing(self._zero_scores(shard), self._zero_scores(self.data.valid))
        self.patient = self.observer if isinstance(self.observer, Patient) else None
        self.stretches = self._stretches(grower) if self.patient is not None else None

    def _stretches(self, grower: Grower) -> Stretches | None:
        """What runs several rounds at once, where all rounds are of the kind that it runs."""
        bare = self.collective.size == 1 and self.data.valid is None and not self.config.conditions
        if not bare or self.sampler.retries > 0 or self.shrinkage != 1.0 or self.decoding.coded:
            return None
        return stretches_of(self.algorithm, self.weak_learner, grower, self.team)

    def _zero_scores(self, shard: Shard | None) -> Scores:
        labels = shard.labels if shard else np.empty(0, np.int32)
        if isinstance(self.algorithm, MaybeSparse) and self.algorithm.sparse:
            return zero_sparse_scores(labels, self.algorithm.n_columns)
        return zero_scores(labels.shape[0], self.algorithm.n_columns)

    def run(self, start: Start) -> TrainingResult:
        """All rounds that are missing; the reason is that of the round that ended the loop."""
        self.observer.enter(Phase.OTHER)
        self._begin(start)
        look = self._look()
        # the last round of the model so far may have been the last of all
        reason = self._end(look.seen) if self.records else None
        while reason is None:
            reason, look = self._stretch(look) or self._round(look)
        self.observer.enter(Phase.OTHER)
        if not self.records:
            self._settle_for_majority(look)
        n_kept = self.best.round if self.config.stopping is not None else len(self.records)
        kept, multipliers = self.standing.rounds[:n_kept], self.standing.multipliers[:n_kept]
        forest = make_forest(kept, multipliers, self.decoding, self.data.binning)
        return TrainingResult(forest, tuple(self.records), reason, self._temperature(n_kept), self._margins(n_kept))

    def _begin(self, start: Start) -> None:
        """Take over what there is already, and hand out the scores from now on."""
        model = start.model or self.so_far()
        if start.standing is not None and start.standing.whole:
            self.standing = start.standing
        start.standing = self.standing
        shard, scores = self.data.train, self.standing.scores
        plain = shard.sets is None and shard.copies is None and not self.decoding.coded
        scores.watch(shard.labels if plain else None)
        self._bring_to(model)
        if self.standing.rounds:
            scores.look(self.standing.rounds[-1], self.team)
        remind(self.algorithm, model)
        self.slack, self.perfect = model.slack, model.perfect
        for record in model.records:
            self._note(record)

    def _bring_to(self, model: ModelSoFar) -> None:
        bring_to(self.standing, model, (self.data.train, self.data.valid), self.data.binning, self.team)

    def so_far(self) -> ModelSoFar:
        """The rounds that are finished; a round that was taken but not looked at is not."""
        n_rounds, standing = len(self.records), self.standing
        rounds, multipliers = tuple(standing.rounds[:n_rounds]), tuple(standing.multipliers[:n_rounds])
        return ModelSoFar(rounds, multipliers, tuple(self.records), self.slack, self.perfect)

    def _round(self, look: Look) -> tuple[StopReason | None, Look]:
        sent = self.collective.bytes_sent
        self.collective.begin_round(len(self.records) + 1)
        for attempt, (gains, sums) in enumerate(self._attempts(look)):
            self.observer.enter(Phase.GROWING)
            fitted, step = self._fit(gains, sums, look.totals, attempt)
            if step.refused is None:
                break
        fitted, step = shrink(fitted, step, self.shrinkage)
        if step.refused is not None:
            return step.refused, look
        if self.config.conditions:
            self.observer.enter(Phase.CONDITIONS)
        conditions = self.meter.measure(self.algorithm, gains)
        self._take(fitted, step)
        look = self._look()
        self.observer.enter(Phase.REPORT)
        self._record(fitted, step, look.seen, self.collective.bytes_sent - sent, conditions)
        self._keep()
        return self._end(look.seen), look

    def _stretch(self, look: Look) -> tuple[StopReason | None, Look] | None:
        """Rounds that kernels run by themselves; None where the next one is not of that kind."""
        if self.stretches is None or not self.stretches.ready(look.gains, self.standing):
            return None
        self.observer.enter(Phase.GROWING)
        passed, gains = self.stretches.run(self.standing, self.config.rounds - len(self.records))
        try:
            if not passed:
                return None
            reason, seen = self._pass(passed)
            return reason, Look(gains, gains.totals, gains.own_sums(self.team), seen)
        finally:
            self.team.release()

    def _pass(self, passed: Sequence[Passed]) -> tuple[StopReason | None, Seen]:
        """Record rounds that have been run. Those after one that ends the training are taken back."""
        assert self.patient is not None
        self.patient.passed([each.nanoseconds for each in passed])
        self.observer.enter(Phase.REPORT)
        for each in passed:
            self.collective.begin_round(len(self.records) + 1)
            seen = Seen(each.ln_loss, *each.errors, 0, 0, self.observer.stop_requested())
            self._record(each.fitted, each.step, seen, 0)
            reason = self._end(seen)
            if reason is not None:
                break
        self._keep()
        if reason is not None:
            self._bring_to(self.so_far())
        return reason, seen

    def _settle_for_majority(self, look: Look) -> None:
        """No step was taken at all: the constant model becomes round 1, with edge and step 0 and the loss as it was."""
        fitted = constant_model(self.data, self.transform, self.decoding)
        step = Step(0.0, 0.0, np.ones(1, np.int64), 0.0, 0.0)
        sent = self.collective.bytes_sent
        self._add(fitted, step)
        _, agreed = max_and_sums(np.zeros(0, np.int64), self._errors(), self.collective)
        wrong, strict, wrong_valid, log_loss, _ = agreed
        seen = look.seen._replace(wrong=wrong, strictly_wrong=strict, wrong_valid=wrong_valid, log_loss=log_loss)
        self.observer.enter(Phase.REPORT)
        self._record(fitted, step, seen, self.collective.bytes_sent - sent)
        self._keep()

    def _attempts(self, look: Look) -> Iterator[tuple[Gains, Integers]]:
        """The round's gains, and what else to try as long as steps are refused: other gains, then other samples."""
        gains, sums = look.gains, look.sums
        yield gains, sums
        while (redrawn := self._redrawn(gains)) is not None:
            gains, sums = redrawn, self.collective.sum(channel_sums(redrawn.matrix, self.team))
            yield gains, sums
        for _ in range(self.sampler.retries):
            yield gains, sums

    def _fit(self, gains: Gains, sums: Integers, totals: Integers, attempt: int) -> tuple[Fitted, Step]:
        some, some_sums = self.sampler.sample(gains.matrix, sums, (len(self.records), attempt))
        fitted = self.sampler.revalued(self.weak_learner.fit(some, some_sums), gains.matrix, self.weak_learner)
        self.meter.note(fitted)
        self.observer.enter(Phase.STEP)
        outcomes = self.algorithm.outcomes(fitted, gains)
        if outcomes.shape[0] > 0:
            outcomes = self.collective.sum(outcomes)
        step = self.algorithm.step(fitted, totals, outcomes)
        return step.moved or fitted, step

    def _redrawn(self, gains: Gains) -> Gains | None:
        return self.algorithm.redraw(gains) if isinstance(self.algorithm, Redraws) else None

    def _end(self, seen: Seen) -> StopReason | None:
        # an edge of 1 with rows still wrong: their gains rounded to 0, and the capped step has made them visible
        if self.perfect and seen.strictly_wrong == 0:
            return StopReason.EDGE_ONE
        if self.records[-1].alpha == 0.0:
            return StopReason.EDGE_ZERO  # the constant model: nothing beats it
        if len(self.records) >= self.config.rounds:
            return StopReason.ROUNDS
        if self.best.has_passed(len(self.records)):
            return StopReason.STOPPED_EARLY
        return StopReason.CANCELLED if seen.stop else None

    def _take(self, fitted: Fitted, step: Step) -> None:
        """Add the weak learner to the model and to all scores; the algorithm is told."""
        self._add(fitted, step)
        self.algorithm.taken(fitted, step)

    def _add(self, fitted: Fitted, step: Step) -> None:
        standing, multipliers = self.standing, step.multipliers
        self.observer.enter(Phase.UPDATE)
        standing.whole = False
        add_round(standing.scores, fitted, multipliers, [part.tree.leaf_of_row for part in fitted.parts], self.team)
        if self.data.valid is not None:
            self.observer.enter(Phase.VALIDATE)
            leaves = route_round(fitted, self.data.valid, self.data.binning, self.team)
            add_round(standing.valid_scores, fitted, multipliers, leaves, self.team)
            self.observer.enter(Phase.UPDATE)
        # the model needs no rows: kept, they would grow by a leaf number a row and round
        standing.rounds.append(fitted.without_rows())
        standing.multipliers.append(multipliers)
        standing.whole = True

    def _look(self) -> Look:
        """Two exchanges: the greatest exponents with the error counts, then the sums of the gain matrix."""
        errors = self._errors()
        self.observer.enter(Phase.WEIGHTS)
        peaks, counts = max_and_sums(self.algorithm.peaks(self.standing.scores), errors, self.collective)
        gains = self.algorithm.gains(self.standing.scores, peaks)
        sums = gains.own_sums(self.team)
        totals = gains.totals
        if self.collective.size > 1:
            totals, sums = np.split(self.collective.sum(np.concatenate([totals, sums])), [totals.shape[0]])
        loss = self.algorithm.ln_loss(gains, totals)
        wrong, strict, wrong_valid, log_loss, stop = counts
        return Look(gains, totals, sums, Seen(loss, wrong, strict, wrong_valid, log_loss, stop > 0))

    def _error_bound(self) -> float | None:
        factor = self.algorithm.error_factor
        return None if factor is None else factor * math.exp(min(self.ln_bound, LARGEST_LN))

    def _errors(self) -> list[int]:
        """Of this member's rows: wrong, not strictly right; wrong and log loss of validation; whether to stop."""
        errors = self.judge.count(self.standing.scores, self.data.train, self.team)
        return [*errors, *self._valid_losses(), int(self.observer.stop_requested())]

    def _valid_losses(self) -> tuple[int, int]:
        """Errors on this member's validation rows, and their log loss if that is wanted."""
        if self.data.valid is None:
            return 0, 0
        self.observer.enter(Phase.VALIDATE)
        scores = self.standing.valid_scores
        wrong, _ = self.judge.count(scores, self.data.valid, self.team)
        if not self._wants_log_loss():
            return wrong, 0
        return wrong, int(self.log_loss.of_rows(scores, self.data.valid, np.ones(1), self.team)[0])

    def _wants_log_loss(self) -> bool:
        return self.config.stopping is not None and self.config.stopping.metric == LOG_LOSS

    def _temperature(self, n_kept: int) -> float:
        """That of the least log loss of all members' validation rows at the model's last round."""
        if self.config.calibration is None:
            return 1.0
        scores = self._scores_after(n_kept, self.standing.valid_scores, self.data.valid)
        rows = self.data.valid
        return best_temperature(
            lambda factors: self.collective.sum(self.log_loss.of_rows(scores, rows, factors, self.team))
        )

    def _margins(self, n_kept: int) -> MarginReport | None:
        """Of the training rows at the model's last round, where rows have one label and labels a column each."""
        if self.data.train.sets is not None or self.decoding.coded or self.records[-1].alpha == 0.0:
            return None
        standing, edges = self.standing, [record.edge for record in self.records[:n_kept]]
        reach = reach_of(standing.rounds[:n_kept], standing.multipliers[:n_kept], self.algorithm.n_columns)
        scores = self._scores_after(n_kept, standing.scores, self.data.train) if reach else standing.scores
        return margin_report(scores, self.data.train, reach, edges, self.collective)

    def _scores_after(self, n_kept: int, scores: Scores, rows: Shard | None) -> Scores:
        """The scores at the model's last round: a copy if more rounds were run."""
        standing = self.standing
        if n_kept == len(standing.rounds) or rows is None:
            return scores
        copy, taken_back = scores.wide(), [-multipliers for multipliers in standing.multipliers[n_kept:]]
        replay(copy, list(zip(standing.rounds[n_kept:], taken_back, strict=True)), rows, self.data.binning, self.team)
        return copy

    def _record(
        self, fitted: Fitted, step: Step, seen: Seen, bytes_sent: int, conditions: Conditions | None = None
    ) -> None:
        n_rows, n_valid = self.wholes
        self.ln_bound += step.ln_factor
        record = RoundRecord(
            round=len(self.records) + 1,
            edge=step.edge,
            alpha=step.alpha,
            loss=math.exp(min(seen.ln_loss, LARGEST_LN)),
            ln_loss=seen.ln_loss,
            bound=math.exp(min(self.ln_bound, LARGEST_LN)),
            ln_bound=self.ln_bound,
            error_bound=self._error_bound(),
            train_error=seen.wrong / n_rows,
            strict_train_error=seen.strictly_wrong / n_rows,
            valid_error=seen.wrong_valid / n_valid if n_valid else None,
            n_leaves=fitted.n_leaves,
            bytes_reduced=bytes_sent,
            valid_log_loss=self.log_loss.mean(seen.log_loss) if self._wants_log_loss() else None,
            conditions=conditions,
        )
        slack = self.slack + LN_TOLERANCE + step.ln_slack
        check_bounds(record, slack)
        self.slack, self.perfect = slack, step.perfect
        self._note(record)
        self.observer.round_done(record)

    def _keep(self) -> None:
        """Show the model so far to an observer that keeps it."""
        if self.keeper is not None:
            self.observer.enter(Phase.CHECKPOINT)
            self.keeper.keep(self.so_far)

    def _note(self, record: RoundRecord) -> None:
        self.records.append(record)
        self.ln_bound = record.ln_bound
        self.best.note(record)
