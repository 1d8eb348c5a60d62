"""The exponential game against any baseline in plain loops (algorithms.md 3.8): Lemma 1 and the rule made of it."""

import math
from typing import Any

from tests.boost_core.algorithms.oracle_single_label import (
    UNIT,
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

Matrix = list[list[float]]


def on_grid(value: float) -> float:
    return max(round(value * 2**20), 1) * UNIT


def baseline_of(body: dict[str, Any], K: int) -> tuple[Matrix, Matrix, Matrix]:
    """(chance, b, eta), a row for each true class."""
    given = body["baseline"] or [1.0 / K] * K
    rows = [given] * K if len(given) == K else [given[y * K : (y + 1) * K] for y in range(K)]
    chance = [[each / math.fsum(row) for each in row] for row in rows]
    edge = body["edge"]
    b = [[(1.0 - edge) * chance[y][c] + edge * float(c == y) for c in range(K)] for y in range(K)]
    eta = [[0.0] * K for _ in range(K)]
    for y in range(K):
        for c in range(K):
            best = min(0.5 * log(b[y][y] / b[y][c]), 12.0) if b[y][c] > 0 else 12.0
            eta[y][c] = on_grid(body["etas"][c] if body["etas"] else body["eta"] or best)
    return chance, b, eta


def potential(u: list[float], rounds: int, b: list[float], eta: list[float], y: int) -> float:
    """phi by recursion, as expected over the votes; u: by how many votes every label is ahead of y."""
    if rounds == 0:
        return sum(math.exp(eta[c] * u[c]) for c in range(len(u)) if c != y)
    total = 0.0
    for vote in range(len(u)):
        moved = [u[c] + (c == vote) - (vote == y) for c in range(len(u))]
        total += b[vote] * potential(moved, rounds - 1, b, eta, y)
    return total


class BaselineRule(PairRule):
    """One vote a round; a row's gains by its class."""

    def __init__(self, labels: Labels, n_classes: int, body: dict[str, Any], seed: int = 0) -> None:
        super().__init__(labels, n_classes, body, seed)
        self.chance, b, self.eta = baseline_of(body, n_classes)
        K = n_classes
        pairs = [(y, c) for y in range(K) for c in range(K) if c != y]
        ln_a = {
            (y, c): log(1.0 - (b[y][y] + b[y][c]) + exp(self.eta[y][c]) * b[y][c] + b[y][y] / exp(self.eta[y][c]))
            for y, c in pairs
        }
        self.ln_largest = max(ln_a[pair] for pair in pairs if pair[0] in set(labels))
        self.ln_a = {pair: value - self.ln_largest for pair, value in ln_a.items()}
        self.step_length = on_grid(math.fsum(self.eta[y][c] for y, c in pairs) / len(pairs))
        self.largest_rise = max(exp(self.eta[y][c]) - 1.0 for y, c in pairs)
        at_start = sum(exp(body["rounds"] * self.ln_a[y, c]) for y in labels for c in range(K) if c != y)
        self.ln_initial = math.log(at_start / len(labels)) + body["rounds"] * self.ln_largest

    def gains(self, F: Scores) -> NaiveGains:
        n, K = len(F), self.K
        to_come = self.body["rounds"] - self.round - 1
        exponents = {}
        for i, y in enumerate(self.labels):
            for c in range(K):
                if c != y:
                    unit = UNIT * (self.eta[y][c] / self.step_length)
                    exponents[i, c] = to_come * self.ln_a[y, c] + (F[i][c] - F[i][y]) * unit
        shift = max(math.ceil(each * 2**20) for each in exponents.values())
        scale = scale_for(float(K - 1), n * K)
        values, self.potential, self.held = [[0] * K for _ in range(n)], 0, 0
        for i, y in enumerate(self.labels):
            own, held, potential = 0.0, 0.0, 0.0
            for c in range(K):
                if c != y:
                    weight = exp(exponents[i, c] - shift * UNIT)
                    rise = (exp(self.eta[y][c]) - 1.0) / self.largest_rise
                    values[i][c] = -round(weight * rise * 2.0**scale)
                    own += -values[i][c] * exp(-self.eta[y][c])
                    held += weight * 2.0**scale
                    potential += weight * exp(self.ln_a[y, c]) * 2.0**scale
            values[i][y] = round(own)
            self.held += round(held)
            self.potential += round(potential)
        return NaiveGains(values, self.potential, values, scale, shift)

    def ln_loss(self, gains: NaiveGains) -> float:
        return super().ln_loss(gains) + (self.body["rounds"] - self.round) * self.ln_largest

    def outcomes(self, tree: NaiveTree, gains: NaiveGains) -> tuple[int, int]:
        won, best = 0, 0
        self.guessed = math.fsum(
            self.chance[y][c] * sum(row[c] for row, label in zip(gains.values, self.labels, strict=True) if label == y)
            for y in range(self.K)
            for c in range(self.K)
        )
        for i, (answer,) in tree.said().items():
            won += gains.values[i][answer]
            best += gains.values[i][self.labels[i]]
        return won, best

    def step(self, right: int, wrong: int, total: int) -> NaiveStep:
        won, best = right, wrong
        edge = (won - self.guessed) / (best - self.guessed) if best > self.guessed else 0.0
        before, after = exp(self.ln_largest) * total, max(self.held - self.largest_rise * won, 1.0)
        rise = math.log(after / before) if after > before else 0.0
        return self.made(edge if edge > 1e-12 else 0.0, self.step_length, rise, won == best)
