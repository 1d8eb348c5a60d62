"""Where a team's threads run."""

import ctypes
import os
import threading
from collections.abc import Sequence
from contextlib import suppress

_current = getattr(ctypes.CDLL(None), "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None
NOWHERE = -1


class Placement:
    """Keeps started threads off the processor that their caller runs on, where there is another one.

    Linux likes to wake a thread beside the one that woke it. That one goes straight into a kernel and holds the
    processor, so that the woken thread waits until the scheduler next balances: 2 ms were seen where waking elsewhere
    takes 10 to 60 us, and a whole round takes 3 ms. The caller itself may run anywhere, so it is looked after before
    every call (0.3 us): once it has moved to where a thread is kept, the two would share that processor for good.
    Other systems are left alone.
    """

    def __init__(self, threads: Sequence[threading.Thread]) -> None:
        self._threads = threads
        self._avoided = NOWHERE
        self._allowed = os.sched_getaffinity(0) if _current else set[int]()

    def keep_apart(self) -> None:
        """Call it from the caller's thread."""
        if _current is None or len(self._allowed) < 2:
            return
        here = _current()
        if here == self._avoided:
            return
        self._avoided = here
        for thread in self._threads:
            if thread.native_id is not None and thread.is_alive():
                # Processors may have been taken from the process since, and a thread may just have ended. Where threads
                # run is a matter of speed: no training fails for it.
                with suppress(OSError):
                    os.sched_setaffinity(thread.native_id, self._allowed - {here})
