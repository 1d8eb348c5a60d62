"""The algorithms of single-label data in plain loops over Python integers: what the engine must equal to the bit.

A rule turns scores into gains and a tree into a step; `boost` is the loop. Only exp and log are the engine's own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from boost_core import ieee_math
from tests.boost_core.algorithms.oracle_trees import Grid, NaiveGrowth, NaiveTree, limits_of, objective_of

UNIT = 2.0**-20
CAP = 12.0
CAPPED_LN_FACTOR = -math.log(math.cosh(CAP))
WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15

Labels = Sequence[int]
Scores = list[list[int]]


def exp(x: float) -> float:
    return float(ieee_math.exp(x))


def log(x: float) -> float:
    return float(ieee_math.log(float(x)))


def scale_for(largest: float, n_cells: int) -> int:
    """The largest s with largest * 2**s <= 2**30 and n_cells * largest * 2**s < 2**62."""

    def fits(s: int) -> bool:
        scaled = Fraction(largest) * Fraction(2) ** s
        return scaled <= 2**30 and n_cells * scaled < 2**62

    s = 0
    while fits(s + 1):
        s += 1
    while not fits(s):
        s -= 1
    return s


@dataclass
class NaiveGains:
    """values [n][K] for the weak learner; normaliser; E: the pairs' weights or the rows' (one a row); scale, shift."""

    values: list[list[int]]
    total: int
    weights: list[Any]
    scale: int
    shift: int


@dataclass
class NaiveStep:
    """edge; alpha and what the scores get, in score units; ln of the bound's factor; whether all is right."""

    edge: float
    alpha: float
    units: int
    ln_factor: float
    perfect: bool


class PairRule:
    """The exponential pair loss; `body` is the request's algorithm with all defaults."""

    unit = UNIT

    def __init__(self, labels: Labels, n_classes: int, body: dict[str, Any], seed: int = 0) -> None:
        self.labels, self.K, self.body, self.seed = labels, n_classes, body, seed
        self.round = 0
        self.ln_initial = log(n_classes - 1)

    def gains(self, F: Scores) -> NaiveGains:
        n, K = len(F), self.K
        shift = max(F[i][c] - F[i][self.labels[i]] for i in range(n) for c in range(K) if c != self.labels[i])
        scale = scale_for(float(K - 1), n * K)
        E = [[0] * K for _ in range(n)]
        values = [[0] * K for _ in range(n)]
        for i in range(n):
            y = self.labels[i]
            for c in range(K):
                if c != y:
                    exponent = (F[i][c] - F[i][y] - shift) * self.unit
                    E[i][c] = round(exp(exponent) * 2.0**scale)
                    values[i][c] = -E[i][c]
            values[i][y] = round(sum(E[i]) * self.own_share())
        return NaiveGains(values, sum(map(sum, E)), E, scale, shift)

    def own_share(self) -> float:
        return 1.0

    def ln_loss(self, gains: NaiveGains) -> float:
        return math.log(gains.total) - gains.scale * math.log(2) + gains.shift * self.unit - math.log(len(self.labels))

    def outcomes(self, tree: NaiveTree, gains: NaiveGains) -> tuple[int, int]:
        """Weight of the pairs ranked right, and wrong."""
        right, wrong = 0, 0
        for i, (answer,) in tree.said().items():
            if answer == self.labels[i]:
                right += sum(gains.weights[i])
            else:
                wrong += gains.weights[i][answer]
        return right, wrong

    def step(self, right: int, wrong: int, total: int) -> NaiveStep:
        if self.body.get("step") == "exact":
            return self.exact(right, wrong, total)
        if self.body.get("step") == "atanh_half":
            return self.atanh_half(right, wrong, total)
        return self.atanh(right, wrong, total)

    def atanh(self, right: int, wrong: int, total: int) -> NaiveStep:
        value = right - wrong
        edge = value / total
        if value >= total:
            return self.made(edge, CAP, CAPPED_LN_FACTOR, True)
        alpha = min(0.5 * (log(total + value) - log(total - value)), CAP)
        return self.made(edge, alpha, max(0.5 * math.log1p(-edge * edge), CAPPED_LN_FACTOR), False)

    def exact(self, right: int, wrong: int, total: int) -> NaiveStep:
        edge = (right - wrong) / total
        if right <= wrong:
            return self.made(edge, 0.0, 0.0, False)
        alpha = min(0.5 * (log(right) - log(wrong)), CAP) if wrong else CAP
        return self.made(edge, alpha, self.ln_factor(alpha, right, wrong, total), right == total)

    def atanh_half(self, right: int, wrong: int, total: int) -> NaiveStep:
        value = right - wrong
        edge = value / total
        if edge <= 0:
            return self.made(edge, 0.0, 0.0, False)
        alpha = 0.5 * (log(2 * total + value) - log(2 * total - value))
        ln_factor = math.log(1 - edge * edge / 2) - 0.5 * math.log(1 - edge * edge / 4)
        return self.made(edge, alpha, ln_factor, value == total)

    def ln_factor(self, alpha: float, right: int, wrong: int, total: int) -> float:
        """The loss's own factor for any step."""
        neither = total - right - wrong
        return math.log((neither + right * math.exp(-alpha) + wrong * math.exp(alpha)) / total)

    def made(self, edge: float, alpha: float, ln_factor: float, perfect: bool) -> NaiveStep:
        units = round(alpha * 2**20)
        return NaiveStep(edge, units * UNIT, units, ln_factor, perfect)

    def add(self, F: Scores, tree: NaiveTree, units: int) -> None:
        for i, (answer,) in tree.said().items():
            F[i][answer] += units

    def redraw(self, gains: NaiveGains) -> NaiveGains | None:
        return None

    def taken(self, units: int) -> None:
        self.round += 1


class DoubledRule(PairRule):
    """M2: the scores are doubled, the exponents halved."""

    unit = UNIT / 2

    def made(self, edge: float, alpha: float, ln_factor: float, perfect: bool) -> NaiveStep:
        units = 2 * round(alpha * 2**20)
        return NaiveStep(edge, units * UNIT, units, ln_factor, perfect)


class RankingVotesRule(PairRule):
    """MR with votes: both labels of a pair move by alpha / 2."""

    def outcomes(self, tree: NaiveTree, gains: NaiveGains) -> tuple[int, int]:
        right, wrong = 0, 0
        for i, votes in tree.said().items():
            y = self.labels[i]
            for c in range(self.K):
                if votes[c] != votes[y]:
                    right += gains.weights[i][c] if votes[y] == 1 else 0
                    wrong += gains.weights[i][c] if votes[y] == -1 else 0
        return right, wrong

    def made(self, edge: float, alpha: float, ln_factor: float, perfect: bool) -> NaiveStep:
        units = round(alpha * 2**19)
        return NaiveStep(edge, 2 * units * UNIT, units, ln_factor, perfect)

    def add(self, F: Scores, tree: NaiveTree, units: int) -> None:
        for i, votes in tree.said().items():
            F[i] = [f + units * vote for f, vote in zip(F[i], votes, strict=True)]


class FixedRule(PairRule):
    """Steps known in advance."""

    def plan(self) -> tuple[float, float | None]:
        """(alpha, planned edge) of the coming round."""

        def entry(values: Sequence[float]) -> float:
            return values[min(self.round, len(values) - 1)]

        def on_grid(alpha: float) -> float:
            return round(alpha * 2**20) * UNIT

        if self.body.get("alphas"):
            return on_grid(entry(self.body["alphas"])), None
        edge = entry(self.body.get("edges") or [self.body["edge"]])
        return on_grid(self.body.get("eta") or 0.5 * log(1 + self.K * edge / (1 - edge))), edge

    def own_share(self) -> float:
        return exp(-self.plan()[0])

    def step(self, right: int, wrong: int, total: int) -> NaiveStep:
        alpha, planned = self.plan()
        true, false = math.exp(-alpha) - 1, math.exp(alpha) - 1
        mean = (false + true) * total / self.K
        cost = true * right + false * wrong
        edge = (mean - cost) / (mean - true * total)
        edge = edge if edge > 1e-12 else 0.0
        ln_factor = self.ln_factor(alpha, right, wrong, total)
        if planned is not None:
            spread = math.exp(alpha) + math.exp(-alpha) - 2
            kappa = 1 + (1 - planned) / self.K * spread + true * planned
            ln_factor = max(ln_factor, math.log(kappa))
        return self.made(edge, alpha, ln_factor, right == total)


class SampledRule(PairRule):
    """Examples drawn from Lemma 2's weights; edge and step of the full weights."""

    def gains(self, F: Scores) -> NaiveGains:
        self.attempt = 0
        return self.drawn(super().gains(F))

    def redraw(self, gains: NaiveGains) -> NaiveGains | None:
        if self.attempt >= self.body["retries"]:
            return None
        self.attempt += 1
        return self.drawn(gains)

    def drawn(self, gains: NaiveGains) -> NaiveGains:
        examples: list[tuple[int, int]] = []  # (row, label) of each cell in order, with the end of its part
        ends: list[int] = []
        end = 0
        for i, E in enumerate(gains.weights):
            cover = max(E) if self.body["mass"] == "max" else sum(E)
            for c in range(self.K):
                end += cover + sum(E) if c == self.labels[i] else cover - E[c]
                examples.append((i, c))
                ends.append(end)
        values = [[0] * self.K for _ in gains.weights]
        start = stream(self.seed, self.round, self.attempt)
        for number in range(self.body["sample_rows"] or 4 * len(self.labels)):
            point = (mix64((start + (number + 1) * GOLDEN) & WORD) * end) >> 64
            i, c = examples[next(place for place, stop in enumerate(ends) if point < stop)]
            values[i][c] += 1
        return NaiveGains(values, gains.total, gains.weights, gains.scale, gains.shift)


def mix64(x: int) -> int:
    """The finaliser of splitmix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def stream(*names: int) -> int:
    key = 0
    for name in names:
        key = mix64((key + GOLDEN) & WORD) ^ name
    return key


class HitRule(PairRule):
    """M1 and SAMME: a weight a row, exp(-F(i,y)); share of every alpha is held against all rows."""

    def __init__(self, labels: Labels, n_classes: int, body: dict[str, Any], seed: int = 0) -> None:
        super().__init__(labels, n_classes, body, seed)
        self.ln_initial = 0.0
        self.alphas = 0
        self.share = 0.5 if body["name"] == "adaboost_m1" else 1 / n_classes

    def gains(self, F: Scores) -> NaiveGains:
        own = [-F[i][y] for i, y in enumerate(self.labels)]
        shift, scale = max(own), scale_for(1.0, len(own))
        weights = [round(exp((exponent - shift) * UNIT) * 2.0**scale) for exponent in own]
        values = [[weight * (c == y) for c in range(self.K)] for weight, y in zip(weights, self.labels, strict=True)]
        return NaiveGains(values, sum(weights), weights, scale, shift)

    def ln_loss(self, gains: NaiveGains) -> float:
        return super().ln_loss(gains) + self.share * self.alphas * UNIT

    def outcomes(self, tree: NaiveTree, gains: NaiveGains) -> tuple[int, int]:
        right = sum(gains.weights[i] for i, (answer,) in tree.said().items() if answer == self.labels[i])
        return right, gains.total - right

    def step(self, right: int, wrong: int, total: int) -> NaiveStep:
        if self.body["name"] == "adaboost_m1":
            edge, odds = (right - wrong) / total, 0.0
        else:
            edge, odds = (self.K * right - total) / ((self.K - 1) * total), log(self.K - 1)
        if edge <= 0:
            return self.made(edge, 0.0, 0.0, False)
        alpha = min(log(right) - log(wrong) + odds, 2 * CAP) if wrong else 2 * CAP
        factor = (right * math.exp((self.share - 1) * alpha) + wrong * math.exp(self.share * alpha)) / total
        return self.made(edge, alpha, math.log(factor), wrong == 0)

    def taken(self, units: int) -> None:
        super().taken(units)
        self.alphas += units


def rule_of(body: dict[str, Any]) -> type[PairRule]:
    """The rule of a request's algorithm."""
    if body.get("outputs") == "votes":
        return RankingVotesRule
    if body.get("sampling") == "resample":
        return SampledRule
    from tests.boost_core.algorithms.oracle_baseline import BaselineRule
    from tests.boost_core.algorithms.oracle_potential import PotentialRule

    if body.get("baseline") or body.get("etas"):
        return BaselineRule

    return {
        "os_zero_one": PotentialRule,
        "adaboost_m1": HitRule,
        "samme": HitRule,
        "adaboost_m2": DoubledRule,
        "adaboost_mm_fixed": FixedRule,
        "os_exponential": FixedRule,
    }.get(body["name"], PairRule)


# --- the loop -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NaiveRound:
    """One round; scores are those after it, bound the product of the factors so far."""

    tree: tuple
    edge: float
    alpha: float
    units: int
    scores: tuple[tuple[int, ...], ...]
    wrong: int
    strictly_wrong: int
    ln_loss: float
    ln_bound: float


@dataclass
class NaiveRun:
    """All rounds that made it into the model and why there are no more."""

    rounds: list[NaiveRound] = field(default_factory=list)
    stop_reason: str = "rounds"


def boost(grid: Grid, labels: Labels, n_classes: int, body: dict[str, Any], rounds: int, seed: int = 0) -> NaiveRun:
    """Boosting; body: the request's algorithm with all defaults, weak learner included."""
    rule = rule_of(body)(labels, n_classes, {**body, "rounds": rounds}, seed)
    F: Scores = [[0] * n_classes for _ in labels]
    run, ln_bound = NaiveRun(), rule.ln_initial
    gains = rule.gains(F)
    while len(run.rounds) < rounds:
        tree, step = fit(grid, rule, gains, body)
        again: NaiveGains | None = gains
        while (step.edge <= 0 or step.units <= 0) and (again := rule.redraw(gains)) is not None:
            tree, step = fit(grid, rule, again, body)
        if step.edge <= 0 or step.units <= 0:
            run.stop_reason = "edge_zero" if step.edge <= 0 else "alpha_zero"
            break
        rule.add(F, tree, step.units)
        rule.taken(step.units)
        gains = rule.gains(F)
        ln_bound += step.ln_factor
        wrong, strict = count_errors(F, labels)
        frozen = tuple(map(tuple, F))
        found = (tree.nested(), step.edge, step.alpha, step.units, frozen, wrong, strict)
        run.rounds.append(NaiveRound(*found, rule.ln_loss(gains), ln_bound))
        if step.perfect and strict == 0:
            run.stop_reason = "edge_one"
            break
    return run


def fit(grid: Grid, rule: PairRule, gains: NaiveGains, body: dict[str, Any]) -> tuple[NaiveTree, NaiveStep]:
    learner = body["weak_learner"]
    max_leaves, max_depth = limits_of(learner)
    tree = NaiveGrowth(grid, gains.values, objective_of(learner), max_depth).grow(max_leaves)
    return tree, rule.step(*rule.outcomes(tree, gains), gains.total)


def count_errors(F: Scores, labels: Labels) -> tuple[int, int]:
    """(rows predicted wrong, rows where a wrong class is at least level with the right one)."""
    wrong, strict = 0, 0
    for row, label in zip(F, labels, strict=True):
        wrong += row.index(max(row)) != label
        strict += any(score >= row[label] for c, score in enumerate(row) if c != label)
    return wrong, strict
