"""MCBoost in plain loops over Python integers: what the engine must equal to the bit.

exp, log1p, atan and log are the engine's own, and so are the trial points of the line search (tested by themselves)
and the scales of sums along a line; all sums, gains, trees, steps and scores are spelled out here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from boost_core import ieee_math
from boost_core.algorithms.line_search import least_along
from boost_core.algorithms.margin_losses import row_limits, sum_factor
from tests.boost_core.algorithms.oracle_single_label import CAP, UNIT, NaiveRound, NaiveRun, count_errors, scale_for
from tests.boost_core.algorithms.oracle_trees import (
    ErrorLabels,
    Grid,
    Leaf,
    NaiveGrowth,
    NaiveTree,
    Node,
    Sums,
    VoteVectors,
    limits_of,
)
from tests.calling import called

Outputs = list[list[float]]  # of each leaf for each kind of classes
HALF = 0.5 * UNIT


def exp(x: float) -> float:
    return float(ieee_math.exp(x))


def log(x: float) -> float:
    return float(ieee_math.log(float(x)))


# --- leaves -------------------------------------------------------------------------------------------------


class Directions:
    """|S| and sqrt(K / (K - 1)) S / |S|."""

    def leaf(self, sums: Sums) -> Leaf:
        total = 0.0
        for s in sums:
            total += float(s) * float(s)
        factor = math.sqrt(len(sums) / (len(sums) - 1.0)) * 2**20
        said = [float(s) / math.sqrt(total) * factor if total else 0.0 for s in sums]
        return round(math.sqrt(total)), tuple(map(round, said))

    def leaves(self, left: Sums, right: Sums) -> tuple[Leaf, Leaf]:
        return self.leaf(left), self.leaf(right)


class Averages(Directions):
    """S**2 / n in units, of sums (S, n); leaves say (S, n) until the tree is grown."""

    def __init__(self, unit: float) -> None:
        self.unit = unit

    def leaf(self, sums: Sums) -> Leaf:
        total, n = sums
        return round(float(total) * (float(total) / float(n) / self.unit)), (total, n)


class CountedGrowth(NaiveGrowth):
    """Growth on gains whose last channel counts rows, which is no gain."""

    def increase(self, leaf: Node) -> int:
        if leaf.best is None:
            return 0
        gain = leaf.best[0] - leaf.value
        return gain if gain > sum(abs(self.gains[i][0]) for i in leaf.rows) >> 28 else 0


def averaged(tree: NaiveTree) -> int:
    """Scale the leaves' means so that the largest is 1; the tree's sum of gains times outputs."""
    means = [leaf.payload[0] / leaf.payload[1] for leaf in tree.leaves]
    largest = max(map(abs, means))
    said = [round(mean / largest * 2**20) if largest else 0 for mean in means]
    value = sum(leaf.payload[0] * s for leaf, s in zip(tree.leaves, said, strict=True)) >> 20
    for leaf, s in zip(tree.leaves, said, strict=True):
        leaf.payload = (s,)
    return value


# --- losses of a row's margins ------------------------------------------------------------------------------


def logistic(margins: Sequence[float], own: int) -> tuple[float, list[float], list[float]]:
    """Loss, weights, and their use as curvatures."""
    lowest = min([0.0, *(m for k, m in enumerate(margins) if k != own)])
    weights = [exp(lowest - m) if k != own else 0.0 for k, m in enumerate(margins)]
    total = 0.0
    for weight in weights:
        total += weight
    rest = exp(lowest)
    loss = float(called(ieee_math.log1p)(total)) if lowest == 0 else log(rest + total) - lowest
    shares = [weight / (rest + total) for weight in weights]
    return loss, shares, shares


def tangent(margins: Sequence[float], own: int) -> tuple[float, list[float], list[float]]:
    loss, weights, curves = 0.0, [0.0] * len(margins), [0.0] * len(margins)
    for k, m in enumerate(margins):
        if k != own:
            root, spread = 2.0 * float(ieee_math.atan(m)) - 1.0, 1.0 + m * m
            weights[k], curves[k] = -4.0 * root / spread, 8.0 * (1.0 - m * root) / (spread * spread)
            loss += root * root
    return loss, weights, curves


# --- boosting -----------------------------------------------------------------------------------------------


@dataclass
class State:
    """Scores and what follows from them: weights q [n][K], the sum of their sizes, that of losses, their factor."""

    F: list[list[int]]
    q: list[list[int]]
    size: int
    lost: int
    loss_factor: float
    peak: int


class MarginBoost:
    """A run; body: the request's algorithm with all defaults."""

    def __init__(self, grid: Grid, labels: Sequence[int], K: int, body: dict[str, Any]) -> None:
        self.grid, self.labels, self.K, self.body, self.n = grid, labels, K, body, len(labels)
        self.loss = body["loss"]
        self.coordinate = body["name"] == "cd_mcboost"
        self.j = 0

    def run(self, rounds: int) -> NaiveRun:
        run, F = NaiveRun(), [[0] * self.K for _ in self.labels]
        state = self.look(F)
        first = {"exponential": self.K - 1.0, "logistic": log(self.K), "tangent": self.K - 1.0}
        ln_bound = log(first[self.loss])
        while len(run.rounds) < rounds:
            found = self.one_round(state)
            if isinstance(found, str):
                run.stop_reason = found
                break
            tree, edge, alpha, units, factor, perfect = found
            for i, said in tree.said().items():
                if len(said) == 1 and self.K > 1:
                    F[i][said[0]] += units
                else:
                    F[i] = [f + units * s for f, s in zip(F[i], said, strict=True)]
            state = self.look(F)
            ln_bound += factor
            wrong, strict = count_errors(F, self.labels)
            ln_loss = math.log(max(state.lost, 1)) - math.log(state.loss_factor) - math.log(self.n)
            if self.loss == "exponential":
                ln_loss += state.peak * HALF
            frozen = tuple(map(tuple, F))
            run.rounds.append(NaiveRound(tree.nested(), edge, alpha, units, frozen, wrong, strict, ln_loss, ln_bound))
            if perfect and strict == 0:
                run.stop_reason = "edge_one"
                break
        return run

    def margins(self, row: list[int], y: int) -> list[float]:
        return [(float(row[y]) - float(s)) * HALF for s in row]

    def look(self, F: list[list[int]]) -> State:
        peak = max(F[i][k] - F[i][y] for i, y in enumerate(self.labels) for k in range(self.K) if k != y)
        cells, q, lost = self.n * self.K, [], 0
        if self.loss == "exponential":
            scale = scale_for(self.K - 1.0, cells)
            loss_factor = 2.0**scale
        else:
            limits = row_limits(self.loss == "logistic", peak * HALF, self.K)
            scale, loss_factor = scale_for(limits.weight, cells), sum_factor(limits.loss, self.n)
        for row, y in zip(F, self.labels, strict=True):
            if self.loss == "exponential":
                each = [round(exp((s - row[y] - peak) * HALF) * 2.0**scale) if k != y else 0 for k, s in enumerate(row)]
                lost += sum(each)
            else:
                loss, weights, _ = (logistic if self.loss == "logistic" else tangent)(self.margins(row, y), y)
                each = [round(weight * 2.0**scale) for weight in weights]
                lost += round(loss * loss_factor)
            q.append(each)
        return State(F, q, sum(abs(w) for each in q for w in each), lost, loss_factor, peak)

    def one_round(self, state: State) -> Any:
        """(tree with what it adds as payload, edge, alpha, units, ln factor, perfect) or why training stops."""
        for _ in range(self.K - 1 if self.coordinate else 1):
            found = self.descend(state) if self.body["weak_learner"]["kind"] != "tree" else self.codeword(state)
            if not isinstance(found, str):
                if self.coordinate:
                    self.j = (self.j + 1) % (self.K - 1)
                return found
            if self.coordinate:
                self.j = (self.j + 1) % (self.K - 1)
        return found

    def gains(self, state: State) -> list[list[int]]:
        return [[sum(q) if k == y else -w for k, w in enumerate(q)] for q, y in zip(state.q, self.labels, strict=True)]

    # what the weak learner says: (tree, outputs, kinds, sum of gains, the greatest such sum of a weight of 1)

    def fit(self, state: State) -> tuple[NaiveTree, Outputs, list[int], int, float]:
        K, learner = self.K, self.body["weak_learner"]
        max_leaves, depth = limits_of(learner)
        if not self.coordinate:
            tree = NaiveGrowth(self.grid, self.gains(state), Directions(), depth).grow(max_leaves)
            outputs = [[s * UNIT for s in leaf.payload] for leaf in tree.leaves]
            return tree, outputs, list(range(K)), tree.value, math.sqrt(2.0)
        own = math.sqrt(K * (K - 1 - self.j) / ((K - 1) * (K - self.j)))
        codes = [0.0, own, -own / (K - 1 - self.j)]
        kinds = [1 + (k > self.j) - (k < self.j) for k in range(K)]
        slopes = []
        for q, y in zip(state.q, self.labels, strict=True):
            slope = 0.0
            for kind in range(3):
                slope += float(sum(w for w, a in zip(q, kinds, strict=True) if a == kind)) * (
                    codes[kinds[y]] - codes[kind]
                )
            slopes.append(round(0.5 * slope))
        if learner["kind"] == "stump":
            tree = NaiveGrowth(self.grid, [[s] for s in slopes], VoteVectors(False), depth).grow(2)
            value, unit = tree.value, 1.0
        else:
            unit = max(sum(map(abs, slopes)), 1) / self.n
            leaves = 2 if learner["kind"] == "regression_stump" else max_leaves
            tree = CountedGrowth(self.grid, [[s, 1] for s in slopes], Averages(unit), depth).grow(leaves)
            value, unit = averaged(tree), UNIT
        outputs = [[leaf.payload[0] * unit * code for code in codes] for leaf in tree.leaves]
        return tree, outputs, kinds, value, math.sqrt(K / (2.0 * (K - 1)))

    def descend(self, state: State) -> Any:
        tree, outputs, kinds, value, greatest = self.fit(state)
        edge = min(value / (greatest * max(state.size, 1)), 1.0)
        return self.search(state, tree, outputs, kinds, edge)

    def codeword(self, state: State) -> Any:
        """Single-label trees: K / (K - 1) at the answer; the exponential loss has its least in closed form."""
        max_leaves, depth = limits_of(self.body["weak_learner"])
        tree = NaiveGrowth(self.grid, self.gains(state), ErrorLabels(), depth).grow(max_leaves)
        reach = self.K / (self.K - 1.0)
        if self.loss != "exponential":
            outputs = [[reach * (k == leaf.payload[0]) for k in range(self.K)] for leaf in tree.leaves]
            return self.search(state, tree, outputs, list(range(self.K)), min(tree.value / max(state.size, 1), 1.0))
        right = sum(sum(state.q[i]) for i, (a,) in tree.said().items() if a == self.labels[i])
        wrong = sum(state.q[i][a] for i, (a,) in tree.said().items() if a != self.labels[i])
        if right <= wrong:
            return "edge_zero"
        beta = min(0.5 * (log(right) - log(wrong)), CAP) if wrong else CAP
        factor = (state.size - right - wrong + right * math.exp(-beta) + wrong * math.exp(beta)) / state.size
        units = round(beta * 2**20)
        if units == 0:
            return "alpha_zero"
        alpha = 2 * units * UNIT / reach
        return tree, (right - wrong) / state.size, alpha, 2 * units, math.log(factor), right == state.size

    # the line search

    def search(self, state: State, tree: NaiveTree, outputs: Outputs, kinds: list[int], edge: float) -> Any:
        if edge <= 0:
            return "edge_zero"
        leaf_of = {i: number for number, leaf in enumerate(tree.leaves) for i in leaf.rows}
        exponential = self.loss == "exponential"
        along = self.buckets(state, leaf_of, outputs, kinds) if exponential else self.rows(state, leaf_of, kinds)
        before = along(outputs, 0.0)[0]
        alpha = least_along(lambda at: along(outputs, at)[1:])
        standing = any(
            outputs[leaf_of[i]][kinds[y]] <= outputs[leaf_of[i]][kinds[k]]
            for i, y in enumerate(self.labels)
            for k in range(self.K)
            if k != y and (not exponential or state.q[i][k] > 0)
        )
        units = round(alpha * 2**20)
        while units > 0:
            moves = [[round(output * units) for output in said] for said in outputs]
            factor = along([[move * UNIT for move in said] for said in moves], 1.0)[0] / before
            unseen = 0.5 * self.n * (self.K - 1) * (exp(units * UNIT) - 1)
            if factor < 1 and (not exponential or units <= 2**20 or (1 - factor) * state.size > unseen):
                break
            units //= 2
        if units == 0 or not any(any(said) for said in moves):
            return "alpha_zero"
        perfect = alpha >= CAP and not standing
        if self.body["weak_learner"]["kind"] == "tree":
            return tree, edge, units * UNIT, max(map(max, moves)), log(factor), perfect
        for leaf, said in zip(tree.leaves, moves, strict=True):
            leaf.payload = tuple(said[kind] for kind in kinds)
        return tree, edge, units * UNIT, 1, log(factor), perfect

    def buckets(self, state: State, leaf_of: dict[int, int], outputs: Outputs, kinds: list[int]) -> Callable[..., Any]:
        n_kinds = len(outputs[0])
        sums = [[[0] * n_kinds for _ in range(n_kinds)] for _ in outputs]
        for i, y in enumerate(self.labels):
            for k, weight in enumerate(state.q[i]):
                sums[leaf_of[i]][kinds[y]][kinds[k]] += weight

        def along(outputs: Outputs, alpha: float) -> tuple[float, float, float]:
            loss, slope, curve = 0.0, 0.0, 0.0
            for leaf, said in enumerate(outputs):
                for a in range(n_kinds):
                    for b in range(n_kinds):
                        if sums[leaf][a][b]:
                            move = 0.5 * (said[a] - said[b])
                            weight = float(sums[leaf][a][b]) * exp(-alpha * move)
                            loss, slope, curve = loss + weight, slope - weight * move, curve + weight * move * move
            return loss, slope, curve

        return along

    def rows(self, state: State, leaf_of: dict[int, int], kinds: list[int]) -> Callable[..., Any]:
        is_logistic = self.loss == "logistic"

        def along(outputs: Outputs, alpha: float) -> tuple[float, float, float]:
            reach = 0.5 * max(max(said) - min(said) for said in outputs)
            limits = row_limits(is_logistic, state.peak * HALF + alpha * reach, self.K)
            bounds = (limits.loss, limits.weight * max(reach, 1.0), limits.curve * max(reach, 1.0) ** 2)
            factors = [sum_factor(bound, self.n) for bound in bounds]
            sums = [0, 0, 0]
            for i, y in enumerate(self.labels):
                said = outputs[leaf_of[i]]
                moves = [0.5 * (said[kinds[y]] - said[kinds[k]]) for k in range(self.K)]
                margins = [m + alpha * move for m, move in zip(self.margins(state.F[i], y), moves, strict=True)]
                loss, weights, curves = (logistic if is_logistic else tangent)(margins, y)
                first, second = 0.0, 0.0
                for k in range(self.K):
                    first -= weights[k] * moves[k]
                    second += curves[k] * moves[k] * moves[k]
                second -= first * first if is_logistic else 0.0
                for place, figure in enumerate((loss, first, second)):
                    sums[place] += round(figure * factors[place])
            return tuple(each / factor for each, factor in zip(sums, factors, strict=True))

        return along


def boost(grid: Grid, labels: Sequence[int], n_classes: int, body: dict[str, Any], rounds: int) -> NaiveRun:
    """Boosting; body: the request's algorithm with all defaults, weak learner included."""
    return MarginBoost(grid, labels, n_classes, body).run(rounds)
