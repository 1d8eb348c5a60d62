"""The one place where tests wait for something that they cannot be told of."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

STEP_SECONDS = 0.02
FINAL = {"succeeded", "failed", "cancelled"}
T = TypeVar("T")


def wait_until(read: Callable[[], T], wanted: Callable[[T], bool], seconds: float = 120.0) -> T:
    """Read again and again until it is what is wanted; fails at the deadline with the last reading."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not wanted(value := read()):
        assert time.monotonic() < deadline, f"after {seconds} s still {value!r}"
        pause.wait(STEP_SECONDS)
    return value


def wait_for_job(client: httpx.Client, job_id: str, *states: str) -> dict[str, Any]:
    """The job once it is in one of the states (default: over)."""
    wanted = set(states) or FINAL

    def read() -> dict[str, Any]:
        answer: dict[str, Any] = client.get(f"/v1/jobs/{job_id}").raise_for_status().json()
        return answer

    job = wait_until(read, lambda job: job["status"] in wanted | FINAL)
    assert job["status"] in wanted, job
    return job
