"""A member's threads: runs GIL-free kernels on ranges of features or rows side by side."""

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from boost_core.crew import Sharing, new_crew, share_out
from boost_core.jit import JIT_DISABLED
from boost_core.kernel_times import KERNELS, NO_CLOCK, KernelClock, new_times
from boost_core.placement import Placement
from boost_core.posts import AWAY, CALLED, HELD, POST, STATE, new_posts, serve

Result = TypeVar("Result")
# Waking a thread and waiting for it costs 100 to 200 us; this many element operations take about 600 us.
INLINE_WORK = 1_500_000
SHARED_WORK = 20_000  # the same where no thread is waited for but the one that has claimed something (share)
BLOCKS_A_THREAD = 4
USES_A_LOOK = 4  # kernels to one look where the caller runs: it takes as long as a small kernel's call
NEVER_RUNG = -1  # what no bell says
NOBODY = new_posts(0)
PARTS_A_THREAD = 2  # so that a thread that lags behind holds up little


class _Call:
    """One piece of work that threads may join while it is open; the caller waits only for those that did."""

    def __init__(self, work: Callable[[int], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._all_out = threading.Lock()  # free when nobody is inside any more and the caller waits
        self._all_out.acquire()
        self._open = True
        self._inside = 0
        self.error: BaseException | None = None

    def join(self, rank: int) -> None:
        """Take part, unless the work is done already."""
        with self._lock:
            if not self._open:
                return
            self._inside += 1
        self._run(rank)
        with self._lock:
            self._inside -= 1
            last = self._inside == 0 and self._closed()
        if last:
            self._all_out.release()

    def lead(self) -> None:
        """Do the work, close it, wait for those inside. Errors: the first one that was raised."""
        self._run(0)
        with self._lock:
            self._open = False
            waiting = self._inside > 0
        if waiting:
            self._all_out.acquire()
        if self.error is not None:
            raise self.error

    def _closed(self) -> bool:
        return not self._open

    def _run(self, rank: int) -> None:
        try:
            self._work(rank)
        except BaseException as error:
            self.error = self.error or error


class _Post:
    """Asks a thread to wait at its post for kernels that want help."""


POST_CALL = _Post()


class Team:
    """A fixed number of threads; that of the caller, who must also have made the team, is one of them.

    The caller never waits for a thread that has not begun: on a busy machine it does the work itself.

    times: of the caller's thread in kernels (kernel_times.py). Kernels that threads share tell it themselves; the parts
    of `over` and single calls (`timed`) are timed around, with the few microseconds that Python takes to call a kernel.
    """

    def __init__(self, threads: int, clock: KernelClock = NO_CLOCK) -> None:
        self.threads = threads
        self.times, self._now = new_times(clock), clock.now
        self.crew = new_crew(BLOCKS_A_THREAD * threads)  # of the kernel that the caller is in
        self._calls: list[SimpleQueue[_Call | _Post | None]] = [SimpleQueue() for _ in range(threads - 1)]
        self._edges: dict[tuple[int, int], NDArray[np.int64]] = {}  # of blocks, by size and work
        self._sharings: dict[type, Sharing] = {}
        self._bell = np.zeros(1, np.int64)  # rung at every call that Python makes: see posts.serve
        self._posts = new_posts(threads - 1)
        self._posts_of = [self._posts[: max(used - 1, 0) * POST] for used in range(threads + 1)]
        self._states = memoryview(self._posts.data)  # read and written in a tenth of NumPy's time
        helpers = [
            threading.Thread(target=self._serve, args=(number,), name="edgewise-team", daemon=True)
            for number in range(threads - 1)
        ]
        for helper in helpers:
            helper.start()
        self._placement, self._uses = Placement(helpers), -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the threads. The team can no longer be used."""
        for calls in self._calls:
            calls.put(None)
        self._bell[0] += 1

    def of_caller(self) -> "Team":
        """A team of the caller's thread alone, whose times are this one's."""
        team = Team(1)
        team.times, team._now = self.times, self._now
        return team

    def posts(self, threads: int) -> NDArray[np.int64]:
        """The posts of threads - 1 helpers, for a kernel that wants help (posts.py). Who is away is called back."""
        if threads <= 1 or JIT_DISABLED:
            return NOBODY
        self._uses = (self._uses + 1) % USES_A_LOOK
        if self._uses == 0:
            self._placement.keep_apart()
        for number in range(threads - 1):
            at = number * POST + STATE
            if self._states[at] == AWAY:
                self._states[at] = CALLED
                self._calls[number].put(POST_CALL)
        return self._posts_of[threads]

    def release(self) -> None:
        """Helpers that a kernel holds (posts.py) go, once they have waited for a while."""
        for number in range(self.threads - 1):
            self._states[number * POST + HELD] = 0

    def together(self, threads: int, work: Callable[[int], None]) -> None:
        """Run work(0) here and, on up to threads - 1 others that are free in time, work(rank).

        work(0) must not depend on the others; when it returns, no other begins, and those that have begun are waited
        for.
        """
        if threads <= 1:
            work(0)
            return
        self._placement.keep_apart()
        call = _Call(work)
        for calls in self._calls[: threads - 1]:
            calls.put(call)
        self._bell[0] += 1  # behind the calls: who has not heard it sees them (_serve)
        call.lead()

    def share(self, task: Any, size: int, work: int) -> None:
        """Do a task's parts (crew.do_part) on blocks of range(size), on all threads; work: as in `over`."""
        sharing = self._sharings.get(type(task))
        if sharing is None:
            sharing = self._sharings[type(task)] = Sharing()
        share_out(*self.sharing(sharing, task, size, work))

    def sharing(self, sharing: Sharing, task: Any, size: int, work: int) -> tuple[Any, ...]:
        """What share_out is given to share a task; helpers are called back."""
        edges = self._edges_of(size, work)
        posts = self.posts(self.threads if edges.shape[0] > 2 else 1)
        return sharing.of(task, self.crew, posts, edges, self.times)

    def blocks(self, size: int, work: int) -> int:
        """In how many blocks `share` shares out so much work."""
        return int(self._edges_of(size, work).shape[0]) - 1

    def _edges_of(self, size: int, work: int) -> NDArray[np.int64]:
        """Where `share`'s blocks begin and end, int64 [n_blocks + 1]."""
        edges = self._edges.get((size, work))
        if edges is None:
            threads = self.useful(work, SHARED_WORK)
            n_blocks = max(1, min(threads * BLOCKS_A_THREAD, size)) if threads > 1 else 1
            edges = self._edges[size, work] = np.linspace(0, size, n_blocks + 1).astype(np.int64)
        return edges

    def useful(self, work: int, worth: int) -> int:
        """The threads to share so much work with, where more than `worth` is worth it."""
        return self.threads if work > worth else 1

    def timed(self, kind: int, kernel: Callable[..., Result], *arguments: Any) -> Result:
        """Call a kernel; kind: the entry of `times` that it counts for besides KERNELS, or KERNELS."""
        began = self._now()
        result = kernel(*arguments)
        self._note(kind, began)
        return result

    def _note(self, kind: int, began: int) -> None:
        spent = self._now() - began
        self.times[KERNELS] += spent
        if kind != KERNELS:
            self.times[kind] += spent

    def over(
        self, size: int, work: int, task: Callable[[int, int], Result], kind: int | None = KERNELS, n_parts: int = 0
    ) -> list[Result]:
        """Run task(start, stop) on parts of range(size); results in order of the parts.

        work: rough number of element operations in all, by which small tasks stay in the caller's thread. kind: as in
        `timed`; None: the task tells its own times. n_parts: where it is shared out; 0: a few for each thread. Errors:
        the first one that was raised, after all parts have ended.
        """
        wanted = min(n_parts or self.threads * PARTS_A_THREAD, size)
        n_parts = wanted if self.useful(work, INLINE_WORK) > 1 else 1
        if n_parts <= 1:
            return [task(0, size) if kind is None else self.timed(kind, task, 0, size)]
        parts = iter(range(n_parts))  # each part is taken by one thread: advancing it is atomic under the GIL
        results: list[Any] = [None] * n_parts

        def take_parts(rank: int) -> None:
            began = self._now()
            for part in parts:
                results[part] = task(size * part // n_parts, size * (part + 1) // n_parts)
            if rank == 0 and kind is not None:
                self._note(kind, began)

        self.together(self.threads, take_parts)
        return results

    def each(self, tasks: Sequence[Callable[[], object]], work: int) -> None:
        """Run tasks that may be run in any order; work: of all, as in `over`."""

        def some(start: int, stop: int) -> None:
            for task in tasks[start:stop]:
                task()

        self.over(len(tasks), work, some)

    def _serve(self, number: int) -> None:
        """What a helper does."""
        calls = self._calls[number]
        while (call := calls.get()) is not None:
            if isinstance(call, _Call):
                call.join(number + 1)
                continue
            heard = int(self._bell[0])  # before it looks for calls: who calls rings when the call is there
            serve(self._posts, number, self._bell, heard if calls.empty() else NEVER_RUNG)


class Rehearsal(Team):
    """Shares out everything, without threads: the caller does its own part, then the helper's, so that all is compiled
    that several threads run."""

    def __init__(self) -> None:
        super().__init__(1)
        self.threads = 2
        self.crew = new_crew(BLOCKS_A_THREAD * self.threads)
        posts = new_posts(1)
        posts[STATE] = CALLED
        serve(posts, 0, self._bell, NEVER_RUNG)  # so it returns at once

    def posts(self, threads: int) -> NDArray[np.int64]:
        return NOBODY

    def release(self) -> None:
        """Nobody is held."""

    def together(self, threads: int, work: Callable[[int], None]) -> None:
        for rank in range(threads):
            work(rank)

    def useful(self, work: int, worth: int) -> int:
        return self.threads
