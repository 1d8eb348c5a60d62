"""How a member waits for the others: it looks again for a short while, then sleeps until something comes.

Looking finds a message some 30 us sooner than being woken, but takes a processor that another member, or another job,
may need. So how long to look follows what came of it before, and every look offers the processor to whoever waits.
"""

import math
import os
import select
import time
from collections.abc import Sequence

from workers.link import Link

MOST_SECONDS = 200e-6
LEAST_SECONDS = 5e-6
offer_processor = getattr(os, "sched_yield", lambda: None)


class Waiting:
    """How long it has been worth looking so far."""

    def __init__(self) -> None:
        self._look_seconds = MOST_SECONDS

    def finish(self, links: Sequence[Link], seconds: float) -> list[Link]:
        """Advance all links until they are done; those that are not after so many seconds."""
        waiting = [link for link in links if not link.advance()]
        if not waiting:
            return []
        started = time.monotonic()
        waiting = self._look(waiting, started)
        while waiting:
            left = started + seconds - time.monotonic()
            if left <= 0 or not sleep(waiting, left):
                return [link for link in waiting if not link.advance()]
            waiting = [link for link in waiting if not link.advance()]
        return []

    def _look(self, waiting: list[Link], started: float) -> list[Link]:
        """Look again and again for a while; who is still waited for."""
        until = started + self._look_seconds
        while waiting and time.monotonic() < until:
            offer_processor()
            waiting = [link for link in waiting if not link.advance()]
        worth = MOST_SECONDS if not waiting else self._look_seconds / 2
        self._look_seconds = max(LEAST_SECONDS, min(MOST_SECONDS, worth))
        return waiting


def sleep(waiting: Sequence[Link], seconds: float) -> bool:
    """Sleep until a link can go on; False if none can after so many seconds.

    Who has sent everything sleeps on one link alone: waking once for each message costs more than the messages. Nobody
    waits for this member then, and what the other links bring fits their buffers or waits in those of its senders.
    """
    poller = select.poll()
    sending = any(link.events() & select.POLLOUT for link in waiting)
    for link in waiting if sending else waiting[:1]:
        poller.register(link.fileno, link.events())
    return bool(poller.poll(math.ceil(seconds * 1000)))
