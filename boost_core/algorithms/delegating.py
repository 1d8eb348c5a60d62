"""An algorithm whose rounds are those of a form that its weak learner or its data need."""

from typing import Protocol

from boost_core.algorithms.base import Gains, Integers, Step, channels_of, reading_of
from boost_core.fitted import Fitted
from boost_core.scores import Scores


class Form(Protocol):
    """What is passed on: as algorithms.base.Algorithm, without what describes it to users."""

    n_columns: int
    ln_initial: float

    def peaks(self, scores: Scores) -> Integers: ...

    def gains(self, scores: Scores, peaks: Integers) -> Gains: ...

    def ln_loss(self, gains: Gains, totals: Integers) -> float: ...

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers: ...

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step: ...

    def taken(self, fitted: Fitted, step: Step) -> None: ...


class Delegating:
    """Passes everything on to the form."""

    def __init__(self, form: Form, error_factor: float | None) -> None:
        self._form = form
        self.ln_initial = form.ln_initial
        self.n_columns, self.n_channels = form.n_columns, channels_of(form)
        self.reading = reading_of(form)
        self.error_factor = error_factor

    def peaks(self, scores: Scores) -> Integers:
        """See algorithms.base.Algorithm, here and below."""
        return self._form.peaks(scores)

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        return self._form.gains(scores, peaks)

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        return self._form.ln_loss(gains, totals)

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        return self._form.outcomes(fitted, gains)

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        return self._form.step(fitted, totals, outcomes)

    def taken(self, fitted: Fitted, step: Step) -> None:
        self._form.taken(fitted, step)
