"""The plan for 64 members: what a round will cost, computed from constants that are measured here, and checked.

    python -m benchmarks.plan [--case NAME ...] [--no-check] [--json]

Members have one thread each. Of M members one needs in a round, with n exchanges and b bytes sent,

    compute   cell x its cells + value x its histograms' values     three constants, fitted to one member's rounds whose
              + step x n                                             others are not there (plan_members.StandIn)
    packing   byte x b                                               packing, sending, receiving and adding up
    latency   n (exchange + message x (M - 1))                       small sums of 2 and of 4 processes on this machine;
                                                                     the network's own delay comes n times on top
    wire      b x frame / rate                                       b = (M - 1) / M of the smaller children's
                                                                     histograms (reduce-scatter), and small arrays

The check trains 2, 4 and 8 members in network namespaces of their own whose links are limited to the rate. They share
this machine's cores and wait for each other at every exchange, also for members that are not on a core just then. What
that costs is measured for each number of them there, by work that is no training (plan_members.turns): passes over an
array, short and long, with a small exchange after each, and large exchanges. So computed for shared cores is

    slower x compute + n x turn + byte x b                           byte: of a large exchange, with the link's rate

Without root the check is skipped.
"""

import argparse
import itertools
import json
import os
import signal
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.gang import Case
from benchmarks.machine import describe_machine, machine_line
from benchmarks.namespaces import NetworkRefused, check_allowed, limit, namespaces
from benchmarks.plan_members import Processes

CASES = [
    Case("400,000 x 64 x 8", 400_000, 64, 256, 8, 21, 8),
    Case("letter-like 200,000", 200_000, 16, 16, 26, 21, 12),
]
MEMBERS = (1, 2, 4, 8, 16, 32, 64)
CHECKED = (2, 4, 8)
RATES = (1.0, 10.0)  # gigabits a second
FRAME = 1514 / 1448  # bytes of Ethernet frames for a byte of TCP's payload
BAR = 0.25


class Constants(NamedTuple):
    """Seconds."""

    cell: float
    value: float
    step: float
    byte: float
    exchange: float
    message: float


class Work(NamedTuple):
    """What one of `members` does in a round."""

    members: int
    cells: float
    values: float
    exchanges: float
    sent: float


class Cost(NamedTuple):
    """Seconds of a round on a machine of one's own, by what they go into."""

    compute: float
    packing: float
    latency: float
    wire: float

    @property
    def total(self) -> float:
        return sum(self)


def cost(work: Work, constants: Constants, gigabits: float) -> Cost:
    """What a round of one member takes at this rate."""
    each = constants.exchange + constants.message * (work.members - 1)
    return Cost(
        compute=constants.cell * work.cells + constants.value * work.values + constants.step * work.exchanges,
        packing=constants.byte * work.sent,
        latency=work.exchanges * each,
        wire=8 * work.sent * FRAME / (gigabits * 1e9),
    )


class Shared(NamedTuple):
    """Of members that share cores and links. slower: how much longer work takes; turn: seconds that an exchange takes
    after work; byte: seconds of packing, the link's rate included."""

    slower: float
    turn: float
    byte: float


def shared_constants(alone: dict[str, float], turns: dict[str, float]) -> Shared:
    """From seconds of short and long work without exchanges (alone) and with them: turn + slower x work."""
    slower = max(1.0, (turns["long"] - turns["short"]) / (alone["long"] - alone["short"]))
    turn = max(0.0, (turns["short"] + turns["long"] - slower * (alone["short"] + alone["long"])) / 2)
    return Shared(slower, turn, turns["large"] / turns["bytes"])


def on_shared_cores(alone: Cost, work: Work, shared: Shared) -> float:
    """Seconds of a round of members that share cores."""
    return shared.slower * alone.compute + work.exchanges * shared.turn + work.sent * shared.byte


def fitted(amounts: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Constants >= 0 that tell seconds [n] from amounts [n, k] with the least relative squares."""
    scaled = amounts / seconds[:, None]
    best, least = np.zeros(amounts.shape[1]), np.inf
    for n in range(1, amounts.shape[1] + 1):
        for columns in map(list, itertools.combinations(range(amounts.shape[1]), n)):
            found = np.linalg.lstsq(scaled[:, columns], np.ones(len(seconds)))[0]
            error = float(((scaled[:, columns] @ found - 1) ** 2).sum())
            if (found >= 0).all() and error < least:
                best, least = np.zeros(amounts.shape[1]), error
                best[columns] = found
    return best


def measure(case: Case) -> tuple[Constants, list[Work], dict[str, float]]:
    """Constants, what members of each number do, and seconds of work without exchanges; all measured with two processes
    at work."""
    sizes = [size for size in MEMBERS[1:] if size <= case.n_features]
    with Processes(case, 4) as four:
        small, large = four.together("exchange", 2)[0], four.together("exchange", 4)[0]
    with Processes(case, 2) as two:
        rounds = [(size, told) for size in sizes for told in two.apart("stand in", size)]
        work = two.apart("work", 1)
    with Processes(case, 1) as one:
        counts = [(size, one.apart("count", size)[0]) for size in sizes]
    works = [Work(size, **each) for size, each in counts]
    seconds = np.array([told["seconds"] for _, told in rounds])
    amounts = np.array([[told[name] for name in ("cells", "values", "exchanges")] for _, told in rounds])
    cell, value, step = fitted(amounts, seconds)
    first = works[0]
    alone = Work(1, first.members * first.cells, first.values, 0.0, 0.0)
    return (
        Constants(float(cell), float(value), float(step), *exchange_constants(small, large)),
        [alone, *works],
        mean_of(work),
    )


def mean_of(told: list[dict[str, float]]) -> dict[str, float]:
    """Of what several processes say."""
    return {name: sum(each[name] for each in told) / len(told) for name in told[0]}


def exchange_constants(two: dict[str, float], four: dict[str, float]) -> tuple[float, float, float]:
    """Seconds a byte, an exchange and a message, from exchanges of two and of four processes.

    Two have a core each: exchange + message. Of four on C cores each has C / 4: 4 / C (exchange + 3 message).
    """
    byte = max(0.0, (two["large"] - two["small"]) / two["bytes"])
    share = max(1.0, 4 / cores())
    message = max(0.0, (four["small"] / share - two["small"]) / 2)
    return byte, max(0.0, two["small"] - message), message


def cores() -> int:
    """What this process may use."""
    return len(os.sched_getaffinity(0))


def check(case: Case, constants: Constants, works: list[Work], alone: dict[str, float]) -> list[dict[str, Any]]:
    """Rounds of members in namespaces beside what was computed; alone: seconds of work. Errors: NetworkRefused."""
    found = []
    with namespaces(max(CHECKED)) as names, Processes(case, len(names), names) as processes:
        for gigabits in RATES:
            limit(names, gigabits)
            for work in works:
                if work.members not in CHECKED:
                    continue
                shared = shared_constants(alone, mean_of(processes.together("turns", work.members)))
                measured = processes.together("train", work.members)[0]
                computed = on_shared_cores(cost(work, constants, gigabits), work, shared)
                found.append(
                    {
                        "members": work.members,
                        "gigabits": gigabits,
                        "shared": shared._asdict(),
                        "computed": computed,
                        "measured": measured["seconds"],
                        "bytes_computed": work.sent,
                        "bytes_measured": measured["bytes"],
                        "ratio": measured["seconds"] / computed,
                        "within": abs(measured["seconds"] / computed - 1) <= BAR,
                    }
                )
    return found


def plan(case: Case, checked: bool) -> dict[str, Any]:
    """All figures of a table."""
    constants, works, alone = measure(case)
    costs = {f"{rate:g}": [cost(work, constants, rate)._asdict() for work in works] for rate in RATES}
    found = {"case": case.name, "constants": constants._asdict(), "work": [work._asdict() for work in works]}
    return found | {"seconds": costs, "check": check(case, constants, works, alone) if checked else None}


def show(result: dict[str, Any], console: Console) -> None:
    """Tables for people."""
    units = {"cell": "ns", "value": "ns", "step": "us", "byte": "ns", "exchange": "us", "message": "us"}
    scale = {"ns": 1e9, "us": 1e6}
    told = ", ".join(f"{name} {result['constants'][name] * scale[unit]:.3g} {unit}" for name, unit in units.items())
    columns = ["members", "compute", "packing", "latency", "KB sent", "exchanges"]
    columns += [f"{name} {rate:g} Gbit/s" for rate in RATES for name in ("wire", "round")]
    table = Table(*columns, title=f"{result['case']}: computed ms a round\n{told}\n{machine_line()}")
    for row, work in enumerate(result["work"]):
        costs = [Cost(**result["seconds"][f"{rate:g}"][row]) for rate in RATES]
        own = [f"{seconds * 1e3:.1f}" for seconds in costs[0][:3]]
        rates = [f"{seconds * 1e3:.1f}" for each in costs for seconds in (each.wire, each.total)]
        table.add_row(str(work["members"]), *own, f"{work['sent'] / 1e3:,.0f}", f"{work['exchanges']:.1f}", *rates)
    console.print(table)
    if result["check"] is not None:
        show_check(result, console)


def show_check(result: dict[str, Any], console: Console) -> None:
    """Measured beside computed."""
    title = f"{result['case']}: members in namespaces on {cores()} shared cores, ms a round"
    columns = ("slower", "turn", "ns a byte", "computed", "measured", "ratio", "KB computed", "KB measured")
    table = Table("Gbit/s", "members", *columns, title=title)
    for each in result["check"]:
        times = [f"{each[name] * 1e3:.1f}" for name in ("computed", "measured")]
        ratio = f"{each['ratio']:.2f}{'' if each['within'] else ' (beyond the bar)'}"
        sizes = [f"{each[name] / 1e3:,.0f}" for name in ("bytes_computed", "bytes_measured")]
        shared = Shared(**each["shared"])
        reasons = [f"{shared.slower:.2f}", f"{shared.turn * 1e3:.2f}", f"{shared.byte * 1e9:.2f}"]
        table.add_row(f"{each['gigabits']:g}", str(each["members"]), *reasons, *times, ratio, *sizes)
    console.print(table)


def main() -> None:
    """Compute and check, then print tables or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="*", default=None, help="names of cases; all by default")
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that namespaces are removed then too
    checked = not arguments.no_check
    try:
        check_allowed()
    except NetworkRefused as error:
        checked = False
        print(f"plan: the check in network namespaces is skipped: {error}", file=sys.stderr)
    results = [plan(case, checked) for case in CASES if arguments.case is None or case.name in arguments.case]
    if arguments.json:
        print(json.dumps({"machine": describe_machine(), "unit": "seconds", "bar": BAR, "plan": results}, indent=2))
    else:
        for result in results:
            show(result, Console(width=120))


if __name__ == "__main__":
    main()
