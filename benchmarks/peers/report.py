"""Results of a set as a table and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks.peers.methods import PEERS
from benchmarks.peers.settings import SETTINGS
from benchmarks.peers.single import EDGEWISE
from benchmarks.peers.verdicts import Verdict, allowed_error, best_peer, first_at, lowest, reached, verdicts

Results = dict[str, dict[str, Any]]  # by peer; Edgewise among them
CURVES = ("errors", "round_seconds")
VERDICTS = {True: "met", False: "missed", None: "unknown"}


def summary(name: str, results: Results, failures: dict[str, str]) -> dict[str, Any]:
    """JSON-ready: all peers, the best, when Edgewise reached its error, the bars, and who is missing and why."""
    peers = {peer: result for peer, result in results.items() if peer != EDGEWISE}
    best, run = best_peer(peers), results.get(EDGEWISE)
    told: dict[str, Any] = {"set": name, "best_peer": best, "peers": peers, "missing": failures, "bars": []}
    told["settings"] = {**asdict(SETTINGS[name])}
    if run is not None:
        told[EDGEWISE] = {
            **{key: value for key, value in run.items() if key not in CURVES},
            "lowest": asdict(lowest(run)),
            "last": asdict(reached(run, len(run["errors"]) - 1)),
        }
    if run is not None and best is not None:
        arrival = first_at(run, allowed_error(name, peers[best]["error"]))
        told[EDGEWISE]["reached"] = None if arrival is None else asdict(arrival)
        told["bars"] = [asdict(verdict) for verdict in verdicts(name, peers[best], run)]
    return told


def as_table(told: dict[str, Any]) -> Table:
    """A line a peer, then Edgewise's moments."""
    table = Table(title=f"{told['set']}: test error and seconds of training", title_justify="left")
    for head in ("who", "settings", "error %", "s", "processor s", "s with compilation", "load"):
        table.add_column(head, justify="left" if head in {"who", "settings"} else "right")
    for name, peer in PEERS.items():
        if (result := told["peers"].get(name)) is not None:
            who = f"{name} (best)" if name == told["best_peer"] else name
            processor = f"{result['processor_seconds']:.2f}" if "processor_seconds" in result else ""
            figures = (f"{100 * result['error']:.2f}", f"{result['seconds']:.2f}", processor)
            table.add_row(who, peer.settings, *figures, "", load_of(result))
        else:
            table.add_row(name, peer.settings, told["missing"].get(name, "not run"), "", "", "", "")
    for row in _own_rows(told):
        table.add_row(*row)
    return table


def _own_rows(told: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    own = told.get(EDGEWISE)
    if own is None:
        yield EDGEWISE, "", told["missing"].get(EDGEWISE, "not run"), "", "", "", ""
        return
    moments = {"at the best peer's error": own.get("reached"), "lowest": own["lowest"], "all rounds": own["last"]}
    for moment, at in moments.items():
        if at is None:
            yield f"{EDGEWISE}, {moment}", "", "never", "", "", "", ""
        else:
            figures = (f"{100 * at['error']:.2f}", f"{at['seconds']:.2f}", "", f"{at['total_seconds']:.2f}")
            yield f"{EDGEWISE}, {moment}", f"round {at['round']}", *figures, load_of(own)


def load_of(result: dict[str, Any]) -> str:
    """How busy the machine was in the last minute of a run: more than its threads means that others took part."""
    return str(result["machine"]["load_1_minute"])


def verdict_lines(told: dict[str, Any]) -> Iterator[str]:
    """Edgewise's settings and each bar in words."""
    setting = SETTINGS[told["set"]]
    yield f"  {EDGEWISE}: {setting} ({setting.how})"
    absent = [name for name in PEERS if name not in told["peers"]]
    among = f", among the peers that ran (not: {', '.join(absent)})" if absent else ""
    for each in told["bars"]:
        verdict = Verdict(**each)
        figure = "" if verdict.figure is None else f": {verdict.figure:.4f}"
        yield f"  {VERDICTS[verdict.met]}: {verdict.bar}{figure}{among}"
