"""A member's threads: runs GIL-free kernels on ranges of features or rows side by side."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

Result = TypeVar("Result")
Part = tuple[Callable[[int, int], Any], int, int]
Answer = tuple[Any, BaseException | None]
INLINE_WORK = 60_000  # below this many vector additions (about 40 us) handing work to a thread costs more than it saves


class Team:
    """A fixed number of threads; the caller's thread is one of them.

    A queue a thread instead of an executor's shared one and its futures: half the time from call to start.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._asked: list[SimpleQueue[Part | None]] = [SimpleQueue() for _ in range(threads - 1)]
        self._answers: list[SimpleQueue[Answer]] = [SimpleQueue() for _ in range(threads - 1)]
        for asked, answers in zip(self._asked, self._answers, strict=True):
            threading.Thread(target=_serve, args=(asked, answers), name="edgewise-team", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the threads. The team can no longer be used."""
        for asked in self._asked:
            asked.put(None)

    def over(self, size: int, work: int, task: Callable[[int, int], Result]) -> list[Result]:
        """Run task(start, stop) on parts of range(size); results in order of the parts.

        work: rough number of vector additions in all, by which small tasks stay in the caller's thread.
        Errors: that of the first part that failed, after all parts have ended.
        """
        parts = min(self.threads, size) if work > INLINE_WORK else 1
        if parts <= 1:
            return [task(0, size)]
        edges = [size * part // parts for part in range(parts + 1)]
        for part in range(1, parts):
            self._asked[part - 1].put((task, edges[part], edges[part + 1]))
        answers = [
            _run(task, edges[0], edges[1]),
            *(self._answers[part - 1].get() for part in range(1, parts)),
        ]
        for _, error in answers:
            if error is not None:
                raise error
        return [result for result, _ in answers]

    def together(self, threads: int, task: Callable[[int], None]) -> None:
        """Run task(rank) on `threads` threads at once, for kernels that wait for each other (see gate.py)."""
        threads = min(threads, self.threads)
        for rank in range(1, threads):
            self._asked[rank - 1].put((lambda start, _: task(start), rank, rank))
        answers = [_run(lambda start, _: task(start), 0, 0)]
        answers += [self._answers[rank - 1].get() for rank in range(1, threads)]
        for _, error in answers:
            if error is not None:
                raise error


def _run(task: Callable[[int, int], Any], start: int, stop: int) -> Answer:
    try:
        return task(start, stop), None
    except BaseException as error:
        return None, error


def _serve(asked: "SimpleQueue[Part | None]", answers: "SimpleQueue[Answer]") -> None:
    while (part := asked.get()) is not None:
        answers.put(_run(*part))
