"""Servers for tests: one in a thread of this process, and `edgewise serve` as a process of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI

from service.app import create_app
from service.serving import IDLE_SECONDS
from service.settings import Settings


@contextlib.contextmanager
def in_thread(settings: Settings) -> Iterator[tuple[httpx.Client, FastAPI]]:
    """The application on a free port of this process, and a client of it."""
    app = create_app(settings)
    # Where the protocol is named asyncio knows that it is TCP, and sends small answers without a delay of 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    config = uvicorn.Config(app, log_config=None, timeout_keep_alive=IDLE_SECONDS, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    host, port = listener.getsockname()
    try:
        # The listener accepts from now on; the first answer comes when the application has started.
        with httpx.Client(base_url=f"http://{host}:{port}", timeout=60) as client:
            client.get("/healthz").raise_for_status()
            yield client, app
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()
        assert not thread.is_alive()


class ServeProcess:
    """`edgewise serve` on a free port."""

    def __init__(self, data_root: Path, state_dir: Path, *flags: str, **environment: str) -> None:
        command = [sys.executable, "-m", "service.cli", "serve", "--port", "0", "--json"]
        command += ["--data-root", str(data_root), "--state-dir", str(state_dir), *flags]
        self.log = state_dir.parent / f"{state_dir.name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | environment,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.client = httpx.Client(base_url=json.loads(line)["url"], timeout=60)

    def kill(self) -> None:
        """As a power cut would: no shutdown code runs."""
        self.process.send_signal(signal.SIGKILL)
        self._reap()

    def stop(self) -> int:
        """Ask it to end in good order; returns the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self._reap()

    def close(self) -> None:
        """Drop this side's ends of the connections."""
        self.client.close()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _reap(self) -> int:
        self.client.close()
        return self.process.wait(60)


@contextlib.contextmanager
def serving(data_root: Path, state_dir: Path, *flags: str, **environment: str) -> Iterator[ServeProcess]:
    """A server process that does not outlive the block."""
    server = ServeProcess(data_root, state_dir, *flags, **environment)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
        server.close()


@contextlib.contextmanager
def commanding(log: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs, as a terminal starts it (a process group of its own), with its errors in `log`."""
    command = [sys.executable, "-m", "service.cli", *arguments]
    with log.open("w") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True)
    with process:
        try:
            yield process
        finally:
            process.kill()
