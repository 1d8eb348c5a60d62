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
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from boost_core.algorithms.base import Algorithm, Gains, Pace, Paced, Step, step_units
from boost_core.crew import share_out
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import Reading
from boost_core.growth import Grower, Growing
from boost_core.jit import inlined_step, step
from boost_core.kernel_times import KERNELS, UPDATE, WEIGHTS, read_clock
from boost_core.native_calls import LEADER, Call, Room, call_address, make_call, task_at
from boost_core.posts import all_near, hold, n_threads
from boost_core.scores import PEAKS, Adding
from boost_core.start import Standing
from boost_core.team import Team
from boost_core.tree import N_LEAVES, N_NODES, NO_ROWS, NODE_FIELDS, WORTH, GrowingTree, Tree
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


class _Rounds(NamedTuple):
    """What _run_rounds works on. growing int64 [2] (IN): the call that grows a tree; adding, filling: what share_out is
    given to add rounds and to make gains; rule: of steps, which write units int64 [1], for what is added, from total
    int64 [1], of gains; found, seen: what gains and scores leave; limits int64 [3] (IN): rounds, nanoseconds, units in
    all; posts: of all who help; times: kernel_times.py; tree: where one grows; log, done int64 [1]: OUT, rounds and how
    many."""

    growing: Integers
    adding: tuple[Any, ...]
    filling: tuple[Any, ...]
    rule: Any
    units: Integers
    total: Integers
    found: Integers
    seen: Integers
    limits: Integers
    posts: Integers
    times: Integers
    tree: GrowingTree
    log: _Log
    done: Integers


@step
def _run_rounds(context, number, kind):  # type: ignore[no-untyped-def]
    """Run rounds and note them. At the context: _Rounds; the number says nothing."""
    task = task_at(context, kind)
    times, limits, log, done, reach = task.times, task.limits, task.log, 0, np.int64(0)
    began, inside = read_clock(times), times[KERNELS]
    for place in range(task.found.shape[0]):
        log.found[0, place] = task.found[place]
    while done < limits[0] and (done == 0 or all_near(task.posts)):
        call_address(task.growing[0], task.growing[1], LEADER)
        task.units[0] = step_units(task.rule, task.tree.counts[WORTH], task.total[0])
        reach += task.units[0]
        if task.units[0] <= 0 or reach > limits[2]:
            break
        grown = read_clock(times)
        share_out(*task.adding)
        added = read_clock(times)
        share_out(*task.filling)
        ended = read_clock(times)
        times[UPDATE] += added - grown
        times[WEIGHTS] += ended - added
        log.units[done], log.ended[done] = task.units[0], ended - began
        _note(log, done, task.tree, task.found, task.seen)
        done += 1
        if ended - began > limits[1]:
            break
    hold(task.posts)
    times[KERNELS] = inside + read_clock(times) - began
    task.done[0] = done


class Passed(NamedTuple):
    """A round of a stretch: its weak learner without rows, its step, ln loss after it; (wrong, strictly wrong);
    nanoseconds: that it took."""

    fitted: Fitted
    step: Step
    ln_loss: float
    errors: tuple[int, int]
    nanoseconds: int


class _Prepared(NamedTuple):
    """What stays from stretch to stretch, as long as scores stay in their array. call: of _run_rounds, which lies in
    the room; threads: that share the work."""

    scores: NDArray[np.integer]
    growing: Growing
    rounds: _Rounds
    room: Room
    call: Call
    threads: int
    adding: Adding
    pace: Pace


class Stretches:
    """Runs stretches of one training; of rows with one label each that count once, without validation."""

    def __init__(self, algorithm: Paced, weak_learner: OneTree, grower: Grower, team: Team) -> None:
        self._algorithm, self._weak_learner, self._grower, self._team = algorithm, weak_learner, grower, team
        self._prepared: _Prepared | None = None
        self._over = False  # all rounds are the loop's from now on

    def ready(self, gains: Gains, standing: Standing) -> bool:
        """Whether `run` may be called now: not before the loop has run a round, which calls all kernels. What else is
        needed is compiled before that."""
        if self._over:
            return False
        prepared = self._prepared
        if prepared is None:
            prepared = self._prepared = self._prepare(gains, standing)
            self._over = prepared is None
            return False
        if prepared.rounds.growing[0] == 0:
            prepared.rounds.growing[:] = prepared.growing.call()
        self._over = prepared.scores is not standing.scores.values
        return not self._over

    def run(self, standing: Standing, most: int) -> tuple[list[Passed], Gains]:
        """Up to so many rounds from the last gains on, which are added to the standing, and the gains after them. None
        of them, where the next round is one for the loop. `ready` comes before it."""
        prepared = self._prepared
        assert prepared is not None
        standing.whole = False
        rounds, pace = prepared.rounds, prepared.pace
        rounds.limits[:] = min(most, MOST_ROUNDS), LONGEST, standing.scores.room
        self._team.posts(prepared.threads)  # calls helpers back
        make_call(*prepared.call, LEADER)
        n_rounds, log = int(rounds.done[0]), rounds.log
        passed = _told(n_rounds, pace, log)
        if passed:
            standing.scores.added(int(log.units[:n_rounds].sum()))
        standing.rounds += [each.fitted for each in passed]
        standing.multipliers += [each.step.multipliers for each in passed]
        standing.whole = True
        return passed, pace.told(log.found[n_rounds])

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
        tree, leaf_of_row = growing.grow.tree, growing.grow.work.leaf_of_row
        adding = scores.adding(tree.payload, leaf_of_row, self._team)
        pace = None if adding is None else self._algorithm.pace(scores, adding.seen[PEAKS:])
        if adding is None or pace is None:
            return None
        growing = replace(growing, grow=growing.grow._replace(sums=pace.sums, total=pace.total))
        posts = max((growing.grow.posts, adding.shared[1], pace.filling[1]), key=len)
        rounds = _Rounds(
            growing=np.zeros(2, np.int64),
            adding=adding.shared,
            filling=pace.filling,
            rule=pace.rule,
            units=adding.units,
            total=pace.total,
            found=pace.found,
            seen=adding.seen,
            limits=np.zeros(3, np.int64),
            posts=posts,
            times=growing.grow.work.times,
            tree=tree,
            log=_new_log(tree, pace),
            done=np.zeros(1, np.int64),
        )
        room = Room(_run_rounds)
        call = room.call(rounds)  # compiles what runs rounds, and nothing of growth
        return _Prepared(scores.values, growing, rounds, room, call, n_threads(posts), adding, pace)


def stretches_of(algorithm: Algorithm, weak_learner: WeakLearner, grower: Grower, team: Team) -> Stretches | None:
    """Where algorithm and weak learner are of the kind that can."""
    if isinstance(algorithm, Paced) and isinstance(weak_learner, OneTree):
        return Stretches(algorithm, weak_learner, grower, team)
    return None


def _new_log(tree: GrowingTree, pace: Pace) -> _Log:
    n, (n_leaves, n_outputs) = MOST_ROUNDS, tree.payload.shape
    return _Log(
        found=np.zeros((n + 1, pace.found.shape[0]), np.int64),
        seen=np.zeros((n, PEAKS), np.int64),
        units=np.zeros(n, np.int64),
        ended=np.zeros(n, np.int64),
        counts=np.zeros((n, tree.counts.shape[0]), np.int64),
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
