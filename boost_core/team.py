"""A member's threads: runs GIL-free kernels on ranges of features or rows side by side."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

Result = TypeVar("Result")
INLINE_WORK = 60_000  # below this many cell additions (about 40 us) handing work to a thread costs more than it saves


class Team:
    """A fixed number of threads; the caller's thread is one of them."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="edgewise") if threads > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def over(self, size: int, work: int, task: Callable[[int, int], Result]) -> list[Result]:
        """Run task(start, stop) on parts of range(size); results in order of the parts.

        work: rough number of additions in all, by which small tasks stay in the caller's thread.
        """
        parts = min(self.threads, size) if work > INLINE_WORK else 1
        if parts <= 1 or self._pool is None:
            return [task(0, size)]
        edges = [size * part // parts for part in range(parts + 1)]
        waiting = [self._pool.submit(task, edges[part], edges[part + 1]) for part in range(1, parts)]
        first = task(edges[0], edges[1])
        return [first, *(future.result() for future in waiting)]
