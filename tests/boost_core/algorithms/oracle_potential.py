"""The 0-1 loss game in plain loops: the potential by its explicit sum and by recursion, and the rule made of it."""

import functools
import math
from typing import Any

from tests.boost_core.algorithms.oracle_single_label import (
    Labels,
    NaiveGains,
    NaiveStep,
    PairRule,
    Scores,
    exp,
    log,
    scale_for,
)
from tests.boost_core.algorithms.oracle_trees import NaiveTree

LN_NOTHING = -700.0


@functools.cache
def log_factorial(n: int) -> float:
    return 0.0 if n == 0 else log_factorial(n - 1) + log(n)


def multiply(x: list[float], y: list[float], degree: int) -> list[float]:
    out = [0.0] * (degree + 1)
    for i, left in enumerate(x):
        for j in range(degree + 1 - i):
            out[i + j] += left * y[j] if left else 0.0
    return out


def kept(u: tuple[int, ...], right: int, rest: int) -> float:
    """Probability that no wrong label catches up, given how many of the votes were right; u ascending."""
    if u[0] + right - 1 < 0:
        return 0.0
    if u[0] + right - 1 >= rest:
        return 1.0
    each = rest / len(u)
    product = [1.0] + [0.0] * rest
    caps = [min(trail + right - 1, rest) for trail in u]
    for cap in sorted(set(caps)):
        factor = [0.0] * (rest + 1)
        for m in range(cap + 1):
            factor[m] = exp(m * log(each) - each - log_factorial(m))
        exponent = caps.count(cap)
        while exponent > 0:  # the same products in the same order as the engine's
            if exponent % 2 == 1:
                product = multiply(product, factor, rest)
            exponent //= 2
            if exponent > 0:
                factor = multiply(factor, factor, rest)
    return product[rest] / exp(rest * log(rest) - float(rest) - log_factorial(rest))


@functools.cache
def potential(u: tuple[int, ...], rounds: int, p: float) -> float:
    """phi by the explicit sum; u ascending."""
    total = 0.0
    for right in range(rounds + 1):
        rest = rounds - right
        ways = log_factorial(rounds) - log_factorial(right) - log_factorial(rest)
        total += exp(ways + right * log(p) + rest * log(1.0 - p)) * kept(u, right, rest)
    return min(max(1.0 - total, 0.0), 1.0)


@functools.cache
def potential_by_recursion(u: tuple[int, ...], rounds: int, p: float) -> float:
    """phi from one round less: what the game is."""
    if rounds == 0:
        return float(min(u) <= 0)
    q = (1 - p) / len(u)
    value = p * potential_by_recursion(tuple(trail + 1 for trail in u), rounds - 1, p)
    for j in range(len(u)):
        lowered = sorted([*u[:j], u[j] - 1, *u[j + 1 :]])
        value += q * potential_by_recursion(tuple(lowered), rounds - 1, p)
    return value


def final_loss(u: tuple[int, ...], loss: str) -> float:
    """What a row is worth in the end; u ascending."""
    if loss == "zero_one":
        return float(min(u) <= 0)
    if loss == "hinge":
        return float(max(0, 1 - min(u)))
    if loss == "exponential":
        return sum(exp(-float(trail)) for trail in u)
    return sum((max(-trail, 0) + log(1.0 + exp(-abs(float(trail))))) / 0.6931471805599453 for trail in u)


@functools.cache
def potential_of_loss(u: tuple[int, ...], rounds: int, p: float, loss: str) -> float:
    """phi of any loss by recursion, equal labels together, in the engine's order; u ascending."""
    if rounds == 0:
        return final_loss(u, loss)
    wrong = 0.0
    for trail in sorted(set(u)):
        rest = list(u)
        rest.remove(trail)
        wrong += u.count(trail) * potential_of_loss(tuple(sorted([*rest, trail - 1])), rounds - 1, p, loss)
    right = potential_of_loss(tuple(trail + 1 for trail in u), rounds - 1, p, loss)
    return p * right + (1.0 - p) / len(u) * wrong


class PotentialRule(PairRule):
    """One vote a round against the potential of what is to come."""

    def __init__(self, labels: Labels, n_classes: int, body: dict[str, Any], seed: int = 0) -> None:
        super().__init__(labels, n_classes, body, seed)
        self.q = (1.0 - body["edge"]) / n_classes
        self.p = self.q + body["edge"]
        self.loss = body["loss"]
        self.ln_initial = self.ln_of(self.potential((0,) * (n_classes - 1), body["rounds"]))

    def potential(self, u: tuple[int, ...], rounds: int) -> float:
        if self.loss == "zero_one":
            return potential(u, rounds, self.p)
        return potential_of_loss(u, rounds, self.p, self.loss)

    def ln_of(self, share: float) -> float:
        return math.log(share) if share > 0 else LN_NOTHING

    def costs(self, F: Scores) -> list[list[float]]:
        to_come = self.body["rounds"] - self.round - 1
        found = []
        for row, y in zip(F, self.labels, strict=True):
            votes = [f >> 20 for f in row]
            if to_come < 0:
                u = tuple(sorted(votes[y] - votes[c] for c in range(self.K) if c != y))
                found.append([final_loss(u, self.loss)] * self.K)
                continue
            after = []
            for voted in range(self.K):
                moved = [vote + (c == voted) for c, vote in enumerate(votes)]
                u = sorted(moved[y] - moved[c] for c in range(self.K) if c != y)
                if self.loss == "zero_one":  # beyond these trails nothing can change any more
                    u = [min(max(trail, -to_come - 2), to_come + 3) for trail in u]
                after.append(self.potential(tuple(u), to_come))
            found.append(after)
        return found

    def gains(self, F: Scores) -> NaiveGains:
        costs = self.costs(F)
        largest = max(max(row) for row in costs)
        exponent = max(math.frexp(largest)[1], -16) if largest else -16
        scale = scale_for(math.ldexp(1.0, exponent), len(F) * self.K)
        values, before, self.all_costs, self.own = [], 0, 0, 0
        for row, y in zip(costs, self.labels, strict=True):
            wrong = 0.0
            for c in range(self.K):
                wrong += row[c] if c != y else 0.0
            base = round((self.p * row[y] + self.q * wrong) * 2.0**scale)
            units = [round(cost * 2.0**scale) for cost in row]
            values.append([base - cost for cost in units])
            before += base
            self.all_costs += sum(units)
            self.own += units[y]
        self.before = before
        return NaiveGains(values, before, values, scale, 0)

    def ln_loss(self, gains: NaiveGains) -> float:
        if gains.total == 0:
            return LN_NOTHING
        return math.log(gains.total) - gains.scale * math.log(2) - math.log(len(self.labels))

    def outcomes(self, tree: NaiveTree, gains: NaiveGains) -> tuple[int, int]:
        """Cost of the answers; nothing else."""
        won = sum(gains.values[i][answer] for i, (answer,) in tree.said().items())
        return self.before - won, 0

    def step(self, right: int, wrong: int, total: int) -> NaiveStep:
        after, spread = right, self.all_costs - self.K * self.own
        edge = (self.all_costs - self.K * after) / spread if spread > 0 else 0.0
        rise = math.log(after) - math.log(total) if after > total > 0 else 0.0
        return NaiveStep(edge, 1.0, 1 << 20, rise, after == 0)
