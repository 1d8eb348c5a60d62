"""A cluster of processes as an operator runs it: a scheduler, workers with their nannies, a server that trains there,
or has it done by a runner.

Each member has a folder for its log, and dies with all that it started, as by a power cut.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.service.live_server import ServeProcess
from tests.service.polling import wait_until

QUICK = {"EDGEWISE_CHECKPOINT_SECONDS": "0.2", "EDGEWISE_POLL_SECONDS": "0.05", "EDGEWISE_LEASE_SECONDS": "5"}


class Member:
    """`edgewise scheduler`, `edgewise worker` or `edgewise runner`."""

    def __init__(self, log: Path, *arguments: str, **environment: str) -> None:
        self.log = log
        command = [sys.executable, "-m", "service.cli", *arguments]
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command, stdout=file, stderr=file, env=os.environ | environment, start_new_session=True
            )

    def address(self) -> str:
        """Where it listens, once it does."""
        text = wait_until(self.log.read_text, lambda text: "listens on" in text or self.process.poll() is not None, 60)
        assert "listens on" in text, text
        return text.partition("listens on ")[2].split()[0]

    def kill(self) -> None:
        """With everything that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)


class Site:
    """A scheduler, `n_workers` workers of one thread, and a server, over one state folder (that of `folder`, else)."""

    def __init__(
        self, folder: Path, data_root: Path, n_workers: int, state: Path | None = None, **environment: str
    ) -> None:
        self.folder, self.data_root, self.n_workers = folder, data_root, n_workers
        self.environment = QUICK | environment
        self.state = state or folder / "state"
        self.workers: list[Member] = []
        self.replaced: list[Member] = []
        self.runners: list[Member] = []
        self.servers: list[ServeProcess] = []
        self._started = 0
        self.scheduler = self.start_scheduler("0")
        self.address = self.scheduler.address()

    def member(self, *arguments: str, **environment: str) -> Member:
        self._started += 1
        return Member(self.folder / f"{arguments[0]}.{self._started}.log", *arguments, **environment)

    def start_scheduler(self, port: str) -> Member:
        self.scheduler = self.member("scheduler", "--port", port)
        return self.scheduler

    def scheduler_again(self) -> None:
        """Where it was."""
        self.start_scheduler(self.address.rpartition(":")[2])
        assert self.scheduler.address() == self.address

    def start_workers(self) -> list[Member]:
        """As many as belong here, in the place of those that there were, which are given back."""
        before, self.workers = self.workers, []
        self.replaced += before
        for _ in range(self.n_workers):
            self.workers.append(self.member("worker", self.address, "--threads", "1"))
        return before

    def start_server(self) -> ServeProcess:
        server = ServeProcess(self.data_root, self.state, "--cluster", self.address, **self.environment)
        self.servers.append(server)
        return server

    def start_runner(self) -> Member:
        """For servers without one of their own."""
        folders = ("--data-root", str(self.data_root), "--state-dir", str(self.state))
        self.runners.append(self.member("runner", *folders, "--cluster", self.address, **self.environment))
        return self.runners[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for server in self.servers:
            if server.process.poll() is None:
                server.kill()
            server.close()
        for member in (*self.runners, *self.workers, *self.replaced, self.scheduler):
            member.kill()
