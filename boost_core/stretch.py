"""Stretches: several rounds in compiled code, where one member has all rows and nothing but kernels is needed.

    Python   prepares ---------------------------------------------- records of all these rounds
    kernel            grow, step, add, weigh -> log; grow, step, ...

Whatever Python runs after a kernel finds its code and data out of the near caches: what it did between the kernels of a
round took two to three times as long as what it does for many rounds at once (docs/performance.md). A round out of the
ordinary is left before scores change, and the loop runs it as all others: it finds the same tree.

The kernels are those of single rounds, called by their addresses; what a step is, the algorithm's file says for a type
of its own (step_units), as weak learners say what a cut is worth.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Algorithm, Gains, Pace, Paced, Step, step_units
from boost_core.crew import share_out
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import Reading
from boost_core.growth import Grower, Growing
from boost_core.jit import bare_kernel, inlined_step
from boost_core.kernel_times import KERNELS, UPDATE, WEIGHTS, read_clock
from boost_core.lone_growth import grow
from boost_core.native_calls import address_of, call_at
from boost_core.posts import POST, all_near, hold
from boost_core.scores import PEAKS, Adding
from boost_core.start import Standing
from boost_core.team import Team
from boost_core.tree import N_LEAVES, N_NODES, NO_ROWS, NODE_FIELDS, WORTH, Tree
from boost_core.weak_learners.base import OneTree, WeakLearner

Integers = NDArray[np.int64]
MOST_ROUNDS = 64  # of a stretch, whose records take some ms
LONGEST = 40_000_000  # nanoseconds from which no further round is begun, so that a cancelled job soon ends
MOST_CELLS = 1 << 21  # of scores: with more a round takes so long that Python does not count


@runtime_checkable
class Patient(Protocol):
    """An observer that may be told of several rounds at once, some ms after the first of them."""

    def passed(self, nanoseconds: Sequence[int]) -> None:
        """The next rounds that are reported were run together, and took so long in kernels: 0, without a clock."""


class _Log(NamedTuple):
    """What is kept of each round (first axis): found: as algorithms leave it (Pace), before the first round, too; seen:
    errors; units; ended: nanoseconds; and of the tree its counts, nodes and payload."""

    found: Integers
    seen: Integers
    units: Integers
    ended: Integers
    counts: Integers
    nodes: Integers
    payload: NDArray[np.int32]


@inlined_step
def _note(log, done, tree, found, seen):  # type: ignore[no-untyped-def]
    """log (OUT): what a round leaves behind, whose number is done."""
    for place in range(found.shape[0]):
        log.found[done + 1, place] = found[place]
    for place in range(log.seen.shape[1]):
        log.seen[done, place] = seen[place]
    for place in range(tree.counts.shape[0]):
        log.counts[done, place] = tree.counts[place]
    for node in range(tree.counts[N_NODES]):
        for place in range(tree.nodes.shape[1]):
            log.nodes[done, node, place] = tree.nodes[node, place]
    for leaf in range(tree.counts[N_LEAVES]):
        for c in range(tree.payload.shape[1]):
            log.payload[done, leaf, c] = tree.payload[leaf, c]


@bare_kernel
def run_rounds(addresses, growing, adding, filling, pace, limits, log):  # type: ignore[no-untyped-def]
    """Run rounds and note them; how many. addresses: of `grow` and of share_out for what is added and filled, then what
    they are given, where the total mass of gains alone changes; pace = (rule, units int64 [1]: what is added reads it,
    total int64 [1], found, seen); limits = (rounds, nanoseconds, units in all, posts of all who help); log: OUT."""
    crew, posts, rows, edges, objective, table, (sums, _), work, helpers_times, tree, summing = growing
    rule, units, total, found, seen = pace
    times, done, reach = work[-1], 0, np.int64(0)
    began, inside = read_clock(times), times[KERNELS]
    for place in range(found.shape[0]):
        log.found[0, place] = found[place]
    while done < limits[0] and (done == 0 or all_near(limits[3])):
        gains = (sums, total[0])
        call_at(addresses[0], (crew, posts, rows, edges, objective, table, gains, work, helpers_times, tree, summing))
        units[0] = step_units(rule, tree.counts[WORTH], total[0])
        reach += units[0]
        if units[0] <= 0 or reach > limits[2]:
            break
        grown = read_clock(times)
        call_at(addresses[1], adding)
        added = read_clock(times)
        call_at(addresses[2], filling)
        ended = read_clock(times)
        times[UPDATE] += added - grown
        times[WEIGHTS] += ended - added
        log.units[done], log.ended[done] = units[0], ended - began
        _note(log, done, tree, found, seen)
        done += 1
        if ended - began > limits[1]:
            break
    hold(limits[3])
    times[KERNELS] = inside + read_clock(times) - began
    return done


class Passed(NamedTuple):
    """A round of a stretch: its weak learner without rows, its step, ln loss after it; (wrong, strictly wrong);
    nanoseconds: that it took."""

    fitted: Fitted
    step: Step
    ln_loss: float
    errors: tuple[int, int]
    nanoseconds: int


class _Prepared(NamedTuple):
    """What stays from stretch to stretch, as long as scores stay in their array. growing: nobody reads it, but it holds
    arrays of which kernels are given addresses alone; calls: kernels and what they are given; threads: that share the
    work."""

    scores: NDArray[np.integer]
    growing: Growing
    calls: tuple[tuple[Any, tuple[Any, ...]], ...]
    threads: int
    adding: Adding
    pace: Pace
    log: _Log


class Stretches:
    """Runs stretches of one training; of rows with one label each that count once, without validation."""

    def __init__(self, algorithm: Paced, weak_learner: OneTree, grower: Grower, team: Team) -> None:
        self._algorithm, self._weak_learner, self._grower, self._team = algorithm, weak_learner, grower, team
        self._prepared: _Prepared | None = None
        self._addresses: tuple[Any, ...] = (0, 0, 0)  # of kernels, once they were called
        self._over = False  # all rounds are the loop's from now on

    def ready(self, gains: Gains, standing: Standing) -> bool:
        """Whether `run` may be called now: not before the loop has run a round, which calls all kernels. What else is
        needed is compiled before that."""
        if self._over:
            return False
        prepared = self._prepared
        if prepared is None:
            prepared = self._prepared = self._prepare(gains, standing)
            if prepared is None:
                self._over = True
            else:
                self._go(prepared, 0, 0, 1)
            return False
        if not all(self._addresses):
            self._addresses = tuple(address_of(kernel, arguments) or 0 for kernel, arguments in prepared.calls)
        self._over = not all(self._addresses) or prepared.scores is not standing.scores.values
        return not self._over

    def run(self, standing: Standing, most: int) -> tuple[list[Passed], Gains]:
        """Up to so many rounds from the last gains on, which are added to the standing, and the gains after them. None
        of them, where the next round is one for the loop. `ready` comes before it."""
        prepared = self._prepared
        assert prepared is not None
        standing.whole = False
        n_rounds = self._go(prepared, min(most, MOST_ROUNDS), standing.scores.room, prepared.threads)
        passed, pace = _told(n_rounds, prepared.pace, prepared.log), prepared.pace
        if passed:
            standing.scores.added(int(prepared.log.units[:n_rounds].sum()))
        standing.rounds += [each.fitted for each in passed]
        standing.multipliers += [each.step.multipliers for each in passed]
        standing.whole = True
        return passed, pace.told(prepared.log.found[n_rounds])

    def _go(self, prepared: _Prepared, most: int, room: int, threads: int) -> int:
        _, _, calls, _, adding, pace, log = prepared
        shown = (pace.rule, adding.units, pace.total, pace.found, adding.seen)
        limits = (most, LONGEST, room, self._team.posts(threads))
        given = (arguments for _, arguments in calls)
        return int(run_rounds(self._addresses, *given, shown, limits, log))

    def _prepare(self, gains: Gains, standing: Standing) -> _Prepared | None:
        matrix, scores = gains.matrix, standing.scores
        if matrix.reading is not Reading.TOGETHER or gains.sums is None:
            return None
        growth = self._weak_learner.growth(matrix.n_channels)
        if max(scores.values.size, MOST_ROUNDS * growth.max_leaves * growth.n_outputs) > MOST_CELLS:
            return None
        growing = self._grower.growing(growth, matrix, gains.sums)
        if growing is None:
            return None
        adding = scores.adding(growing.tree.payload, growing.leaf_of_row, self._team)
        pace = None if adding is None else self._algorithm.pace(scores, adding.seen[PEAKS:])
        if adding is None or pace is None:
            return None
        given = growing.given
        growing = growing._replace(given=(*given[:6], (pace.sums, given[6][1]), *given[7:]))
        calls = ((grow, growing.given), (share_out, adding.shared), (share_out, pace.filling))
        threads = max(len(arguments[1]) for _, arguments in calls) // POST + 1
        return _Prepared(scores.values, growing, calls, threads, adding, pace, _new_log(growing, pace))


def stretches_of(algorithm: Algorithm, weak_learner: WeakLearner, grower: Grower, team: Team) -> Stretches | None:
    """Where algorithm and weak learner are of the kind that can."""
    if isinstance(algorithm, Paced) and isinstance(weak_learner, OneTree):
        return Stretches(algorithm, weak_learner, grower, team)
    return None


def _new_log(growing: Growing, pace: Pace) -> _Log:
    n, (n_leaves, n_outputs) = MOST_ROUNDS, growing.tree.payload.shape
    return _Log(
        found=np.zeros((n + 1, pace.found.shape[0]), np.int64),
        seen=np.zeros((n, PEAKS), np.int64),
        units=np.zeros(n, np.int64),
        ended=np.zeros(n, np.int64),
        counts=np.zeros((n, growing.tree.counts.shape[0]), np.int64),
        nodes=np.zeros((n, n_leaves, NODE_FIELDS), np.int64),
        payload=np.zeros((n, n_leaves, n_outputs), np.int32),
    )


def _told(n_rounds: int, pace: Pace, log: _Log) -> list[Passed]:
    """What the log says of the rounds, of which nothing stays in it. Their trees are views of arrays of all of them."""
    counts, nodes, payload = log.counts[:n_rounds], log.nodes[:n_rounds].copy(), log.payload[:n_rounds].copy()
    steps, losses = pace.passed(log.found[: n_rounds + 1], counts[:, WORTH])
    units, ended = log.units[:n_rounds].tolist(), log.ended[:n_rounds].tolist()
    assert [step.multipliers.item(0) for step in steps] == units
    seen, lasted = log.seen[:n_rounds, :PEAKS].tolist(), [end - began for began, end in pairwise([0, *ended])]
    passed = []
    for number, each in enumerate(counts.tolist()):
        tree = Tree(nodes[number, : each[N_NODES]], payload[number, : each[N_LEAVES]], each[WORTH], NO_ROWS)
        fitted = one_tree(tree, Speech.VOTES)
        passed.append(Passed(fitted, steps[number], losses[number], tuple(seen[number]), lasted[number]))
    return passed
