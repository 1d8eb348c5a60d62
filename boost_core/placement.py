"""Where a team's threads run."""

import ctypes
import os
import threading


def keep_apart(thread: threading.Thread) -> None:
    """Keep a started thread off the processor that the caller runs on, where there is another one.

    Linux likes to wake a thread beside the one that woke it. That one goes straight into a kernel and holds the
    processor, so that the woken thread waits until the scheduler next balances: 2 ms were seen where waking elsewhere
    takes 10 to 60 us, and a whole round takes 3 ms. Other systems are left alone.
    """
    if not hasattr(os, "sched_setaffinity") or thread.native_id is None:
        return
    others = os.sched_getaffinity(0) - {ctypes.CDLL(None).sched_getcpu()}
    if others:
        os.sched_setaffinity(thread.native_id, others)
