"""`edgewise serve`."""

import os
import sys
from collections.abc import Mapping

import typer

from service.cli_output import reporting
from service.serving import serve
from service.settings import load_settings


def run(flags: Mapping[str, object], *, as_json: bool) -> None:
    """Serve until interrupted. Once requests are answered, one line says where."""
    with reporting(as_json) as output:
        settings = load_settings(**flags)

        def ready(address: str) -> None:
            if as_json:
                output.answer({"url": address, "pid": os.getpid()}, "")
            sys.stderr.write(f"edgewise: listening on {address}\n")
            sys.stderr.flush()

        try:
            code = serve(settings, ready)
        except KeyboardInterrupt:
            # The server has shut down in good order by then: to end it so is the way to use it.
            code = 0
        if code:
            raise typer.Exit(code)
