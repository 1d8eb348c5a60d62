"""How a training on the command line shows its progress, and how it is interrupted."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from workers.job import RoundProgress

PHASES = {"read": "reading", "compile": "compiling kernels", "train": "training"}
LINE_SECONDS = 5.0  # without a terminal: a line this often


class ConsoleProgress:
    """Implements workers.job.Progress on standard error: a bar on a terminal, else a line now and then."""

    def __init__(self, rounds: int, interrupted: threading.Event) -> None:
        self._rounds = rounds
        self._interrupted = interrupted
        self._line_at = time.monotonic()
        self._bar = _bar() if sys.stderr.isatty() else None
        self._task = self._bar.add_task("start", total=rounds, figures="") if self._bar else None

    def phase(self, name: str) -> None:
        shown = PHASES.get(name, name)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=shown)
        else:
            self._line(f"{shown} ...")

    def rounds_done(self, batch: Sequence[RoundProgress]) -> None:
        if not batch:
            return
        record = batch[-1].record
        figures = f"edge {record.edge:.4f}  train error {record.train_error:.4f}"
        if record.valid_error is not None:
            figures += f"  valid error {record.valid_error:.4f}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=record.round, figures=figures)
        elif time.monotonic() - self._line_at >= LINE_SECONDS:
            self._line(f"round {record.round} of {self._rounds}: {figures}")

    def warn(self, text: str) -> None:
        self._line(text)

    def cancel_requested(self) -> bool:
        return self._interrupted.is_set()

    def _line(self, text: str) -> None:
        self._line_at = time.monotonic()
        sys.stderr.write(f"edgewise: {text}\n")
        sys.stderr.flush()

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Shows the bar, if there is one, while the block runs."""
        with self._bar if self._bar is not None else contextlib.nullcontext():
            yield


def _bar() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    return Progress(*columns, console=Console(stderr=True))


@contextlib.contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that the first interrupt (or termination) sets; the second one is raised where it strikes."""
    interrupted = threading.Event()

    def handle(number: int, _frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()
        sys.stderr.write("edgewise: stopping after this round; once more to stop at once\n")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
