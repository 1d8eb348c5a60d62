"""Trees as the engine must grow them, by brute force over Python integers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boost_core import ieee_math

GAIN_SHIFT = 28
THRESHOLD, MISSING = 0, 1
Rows = Sequence[int]
Matrix = Sequence[Sequence[int]]
Sums = Sequence[int]
Cut = tuple[int, int, int, bool]  # feature, kind, last bin that goes left, missing values go left
Leaf = tuple[int, tuple[int, ...]]  # value and payload


@dataclass(frozen=True)
class Grid:
    """Binned rows: codes [n_rows][n_features] and how many thresholds each feature has; missing is the code after."""

    codes: Matrix
    n_thresholds: Sequence[int]

    def is_missing(self, row: int, feature: int) -> bool:
        return self.codes[row][feature] == self.n_thresholds[feature] + 1

    def goes_left(self, row: int, cut: Cut) -> bool:
        feature, kind, last_left, missing_left = cut
        if self.is_missing(row, feature):
            return missing_left
        return kind == THRESHOLD and self.codes[row][feature] <= last_left

    def candidates(self, rows: Rows) -> Iterable[Cut]:
        """Every cut of a node, in the order in which ties are broken."""
        for feature, n_thresholds in enumerate(self.n_thresholds):
            some_missing = any(self.is_missing(i, feature) for i in rows)
            for last_left in range(n_thresholds):
                yield feature, THRESHOLD, last_left, True
                if some_missing:
                    yield feature, THRESHOLD, last_left, False
            if some_missing:
                yield feature, MISSING, 0, True


# --- objectives: what leaves are worth and say -------------------------------------------------------------


class ErrorLabels:
    """A leaf answers the label of the greatest sum, which is its worth."""

    def leaf(self, sums: Sums) -> Leaf:
        return max(sums), (list(sums).index(max(sums)),)

    def leaves(self, left: Sums, right: Sums) -> tuple[Leaf, Leaf]:
        return self.leaf(left), self.leaf(right)


class ImpureLabels(ErrorLabels):
    """The same answers, worth their purity."""

    def __init__(self, gini: bool) -> None:
        self.gini = gini

    def leaf(self, sums: Sums) -> Leaf:
        return self.purity(sums), super().leaf(sums)[1]

    def purity(self, sums: Sums) -> int:
        part, total = 0.0, 0.0
        for weight in map(float, sums):
            if self.gini:
                part += weight * weight
            elif weight > 0:
                part += weight * float(ieee_math.log(weight))
            total += weight
        if total <= 0:
            return 0
        if self.gini:
            return int(part / total)
        known = part + total * (float(ieee_math.log(float(len(sums)))) - float(ieee_math.log(total)))
        return int(max(known, 0.0))


def signs(sums: Sums) -> tuple[int, ...]:
    return tuple(1 if value >= 0 else -1 for value in sums)


def dot(votes: Sums, sums: Sums) -> int:
    return sum(vote * value for vote, value in zip(votes, sums, strict=True))


class VoteVectors:
    """A leaf votes for every label; the two leaves of a cut vote opposite ways unless they are free."""

    def __init__(self, free: bool) -> None:
        self.free = free

    def leaf(self, sums: Sums) -> Leaf:
        return dot(signs(sums), sums), signs(sums)

    def leaves(self, left: Sums, right: Sums) -> tuple[Leaf, Leaf]:
        if self.free:
            return self.leaf(left), self.leaf(right)
        votes = signs([above - below for below, above in zip(left, right, strict=True)])
        opposite = tuple(-vote for vote in votes)
        return (dot(opposite, left), opposite), (dot(votes, right), votes)


Objective = ErrorLabels | VoteVectors


def objective_of(weak_learner: dict) -> Objective:
    """Of a resolved weak learner's configuration."""
    if weak_learner["kind"] == "tree":
        criterion = weak_learner.get("criterion", "error")
        return ErrorLabels() if criterion == "error" else ImpureLabels(criterion == "gini")
    return VoteVectors(weak_learner["kind"] == "hamming_tree" and weak_learner.get("votes", "free") == "free")


def limits_of(weak_learner: dict) -> tuple[int, int]:
    """(most leaves, most cuts above a leaf)."""
    if weak_learner["kind"] == "stump":
        return 2, 99
    leaves, nodes = weak_learner.get("max_leaves", 8), weak_learner.get("max_nodes", 0)
    if nodes:
        leaves = min(leaves, (nodes + 1) // 2)
    return leaves, weak_learner.get("max_depth", 0) or 99


# --- growth -------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A node of a growing tree; a leaf until it is cut."""

    rows: Rows
    value: int
    payload: tuple[int, ...]
    depth: int
    best: tuple[int, Cut] | None = None
    cut: Cut | None = None
    left: "Node | None" = None
    right: "Node | None" = None


@dataclass(frozen=True)
class NaiveTree:
    root: Node
    leaves: list[Node]

    @property
    def value(self) -> int:
        return sum(leaf.value for leaf in self.leaves)

    def nested(self) -> tuple:
        """(cut, left, right) for a node, (number, payload) for a leaf."""

        def describe(node: Node) -> tuple:
            if node.left is None or node.right is None:
                number = next(number for number, leaf in enumerate(self.leaves) if leaf is node)
                return number, node.payload
            return node.cut, describe(node.left), describe(node.right)

        return describe(self.root)

    def said(self) -> dict[int, tuple[int, ...]]:
        """What each row's leaf says."""
        return {i: leaf.payload for leaf in self.leaves for i in leaf.rows}


@dataclass(frozen=True)
class NaiveGrowth:
    """Best-first growth, one leaf at a time."""

    grid: Grid
    gains: Matrix
    objective: Objective
    max_depth: int

    def grow(self, max_leaves: int) -> NaiveTree:
        rows = range(len(self.gains))
        root = self.node(rows, self.objective.leaf(self.sums(rows)), 0)
        leaves = [root]
        while len(leaves) < max_leaves:
            increases = [self.increase(leaf) for leaf in leaves]
            index = increases.index(max(increases))
            if increases[index] == 0:
                break
            leaves[index], right = self.split(leaves[index])
            leaves.append(right)
        return NaiveTree(root, leaves)

    def sums(self, rows: Iterable[int]) -> list[int]:
        return [sum(column) for column in zip(*(self.gains[i] for i in rows), strict=True)]

    def node(self, rows: Rows, leaf: Leaf, depth: int) -> Node:
        node = Node(rows, *leaf, depth)
        for cut in self.grid.candidates(rows) if depth < self.max_depth else ():
            left, right = self.partition(rows, cut)
            if left and right:
                value = sum(value for value, _ in self.objective.leaves(self.sums(left), self.sums(right)))
                if node.best is None or value > node.best[0]:
                    node.best = (value, cut)
        return node

    def partition(self, rows: Rows, cut: Cut) -> tuple[list[int], list[int]]:
        return [i for i in rows if self.grid.goes_left(i, cut)], [i for i in rows if not self.grid.goes_left(i, cut)]

    def increase(self, leaf: Node) -> int:
        """What cutting a leaf adds; 0 if it has no cut or the increase is rounding."""
        if leaf.best is None:
            return 0
        mass = sum(abs(gain) for i in leaf.rows for gain in self.gains[i])
        gain = leaf.best[0] - leaf.value
        return gain if gain > mass >> GAIN_SHIFT else 0

    def split(self, node: Node) -> tuple[Node, Node]:
        assert node.best is not None
        node.cut = node.best[1]
        left, right = self.partition(node.rows, node.cut)
        left_leaf, right_leaf = self.objective.leaves(self.sums(left), self.sums(right))
        node.left = self.node(left, left_leaf, node.depth + 1)
        node.right = self.node(right, right_leaf, node.depth + 1)
        return node.left, node.right
