"""What commands print: one answer on standard output, everything else on standard error."""

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from service.errors import Interrupted, is_deliberate, problems_of, rule_for
from service.problem_details import describe
from service.safe_json import encode


class Output:
    """Prints the answer of a command, once."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.exit_code = 0

    def answer(self, answer: Mapping[str, Any], text: str) -> None:
        """The command's result: the JSON object or, for people, the text."""
        content = encode(dict(answer)) if self._as_json else text.encode("utf-8", "backslashreplace")
        _write_answer(content)


@contextlib.contextmanager
def reporting(as_json: bool) -> Iterator[Output]:
    """Runs a command's work; an error becomes a message, with --json also an object, and an exit code."""
    with _stdout_kept_clean() if as_json else contextlib.nullcontext():
        try:
            yield Output(as_json)
        except (typer.Exit, SystemExit):
            raise
        except KeyboardInterrupt:
            raise typer.Exit(print_error(Interrupted("interrupted"), as_json)) from None
        except Exception as error:
            raise typer.Exit(print_error(error, as_json)) from None


def print_error(error: Exception, as_json: bool) -> int:
    """Tell an error; returns its exit code."""
    sys.stderr.write(_for_people(error))
    if as_json:
        _write_answer(encode({"error": describe(error).content()}))
    return rule_for(error).exit_code


def _for_people(error: Exception) -> str:
    if not is_deliberate(error):
        return "".join(traceback.format_exception(error)) + "edgewise: an internal error; please report it\n"
    problem = describe(error)
    if not problems_of(error):
        return f"edgewise: {problem.title}: {problem.detail}\n"
    lines = [f"  {'.'.join(map(str, place.loc))}: {place.message}" for place in problem.errors]
    return "\n".join([f"edgewise: {problem.title}:", *lines]) + "\n"


# The real standard output while `_stdout_kept_clean` is in force.
_answers = [1]


@contextlib.contextmanager
def _stdout_kept_clean() -> Iterator[None]:
    """Sends to standard error whatever any library, or a worker process started meanwhile, prints."""
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    _answers.append(real)
    try:
        yield
    finally:
        sys.stdout.flush()
        _answers.pop()
        os.dup2(real, 1)
        os.close(real)


def _write_answer(content: bytes) -> None:
    sys.stdout.flush()
    view = memoryview(content.rstrip(b"\n") + b"\n")
    while view:
        view = view[os.write(_answers[-1], view) :]
