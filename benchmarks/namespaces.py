"""Network namespaces of one machine, joined by a bridge, whose links send at a limited rate.

    namespace 0 --veth, tbf--+
    namespace 1 --veth, tbf--+-- bridge, in a namespace of its own
    ...

Deleting a namespace takes its links along, so nothing else has to be undone. Needs root, `ip` and `tc`.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

PREFIX = "edgewise-plan"
CLONE_NEWNET = 0x40000000
FOLDER = Path("/run/netns")
LINK = "eth0"
# What may be sent at once after a pause, and the largest piece that TCP hands over: a bucket that holds much would let
# a good part of every exchange through at once, and one smaller than a piece would cut each into packets.
BUCKET_BYTES = 32_000
PIECE_BYTES = 16_000
QUEUE_BYTES = 64_000_000  # nothing is dropped


class NetworkRefused(Exception):
    """The machine does not let this process make namespaces; says why."""


def check_allowed() -> None:
    """Errors: NetworkRefused."""
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    if missing:
        raise NetworkRefused(f"there is no {' and no '.join(missing)} (package iproute2)")
    if os.geteuid() != 0:
        raise NetworkRefused("only root may make network namespaces, and this is not root")


def run(*command: str) -> None:
    """Errors: NetworkRefused with what the command says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NetworkRefused(f"{' '.join(command)}: {done.stderr.strip()}")


def address(number: int) -> str:
    """Of a namespace's link; nobody outside sees it."""
    return f"10.213.0.{number + 1}"


@contextlib.contextmanager
def namespaces(n: int) -> Iterator[list[str]]:
    """Names of n namespaces that reach each other; gone afterwards, whatever happens. Errors: NetworkRefused."""
    check_allowed()
    remove_left_over()
    switch, *names = [f"{PREFIX}-{os.getpid()}-{which}" for which in ("switch", *range(n))]
    with contextlib.ExitStack() as stack:
        for name in (switch, *names):
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], capture_output=True, check=False)
            run("ip", "netns", "add", name)
        run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", switch, "link", "set", "bridge", "up")
        for number, name in enumerate(names):
            plug_in(switch, name, number)
        yield names


def plug_in(switch: str, name: str, number: int) -> None:
    """A link from a namespace to the bridge."""
    port = f"port{number}"
    run("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", LINK, "netns", name)
    run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
    run("ip", "-n", name, "address", "add", f"{address(number)}/24", "dev", LINK)
    run("ip", "-n", name, "link", "set", LINK, "gso_max_size", str(PIECE_BYTES), "up")
    run("ip", "-n", name, "link", "set", "lo", "up")


def limit(names: Sequence[str], gigabits: float) -> None:
    """From now on each namespace sends so many gigabits a second."""
    bucket = (f"{gigabits:g}gbit", "burst", str(BUCKET_BYTES), "limit", str(QUEUE_BYTES))
    for name in names:
        run("tc", "-n", name, "qdisc", "replace", "dev", LINK, "root", "tbf", "rate", *bucket)


def enter(name: str) -> None:
    """Move this process, which must have one thread, into a namespace. Errors: OSError."""
    with (FOLDER / name).open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"setns to {name}: {os.strerror(number)}")


def remove_left_over() -> None:
    """Delete the namespaces of processes that were killed before they could."""
    for path in FOLDER.glob(f"{PREFIX}-*"):
        owner = path.name.removeprefix(f"{PREFIX}-").partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            run("ip", "netns", "delete", path.name)
