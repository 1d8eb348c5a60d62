"""Times Edgewise beside other boosting libraries on real data, in the environment of `make bench`.

    python -m benchmarks.peers --data FOLDER [--sets letter,pendigits] [--peers lightgbm-100,edgewise]
                               [--threads 2] [--cache FOLDER] [--again] [--limit SECONDS] [--json]
    python -m benchmarks.peers --data FOLDER --sets satimage --choose [--votes free]
    python -m benchmarks.peers --data FOLDER --sets satimage --choose-quickest

FOLDER holds NAME.train.parquet and NAME.test.parquet with a column `label`. Every run has a process of its own; results
are kept by set, peer and version, and a run that is kept is not repeated without --again. --peers runs some only, and
shows what is kept of the others. A peer's seconds are its preparation of matrices in memory and its training;
Edgewise's are reading and binning its files and training until the round ended, without the compilation of its
kernels, which is in the last column. --choose and --choose-quickest run the cross-validations on training rows that
settings.py holds the outcomes of: the least error, or the least time to LightGBM's error.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.machine import describe_machine, machine_line
from benchmarks.peers.choosing import choose, quickest
from benchmarks.peers.methods import PEERS
from benchmarks.peers.report import as_table, summary, verdict_lines
from benchmarks.peers.single import EDGEWISE
from benchmarks.peers.store import conditions_of, default_cache, keep, recall
from benchmarks.peers.tables import SETS, digest_of

EVERYONE = (*PEERS, EDGEWISE)


class RunFailed(Exception):
    """A run's process ended without a result."""


def run_alone(data: Path, name: str, peer: str, threads: int, limit: float) -> dict[str, Any]:
    """The result of a run in a new process. Errors: RunFailed, with the last line it wrote."""
    where = ["--data", str(data), "--set", name, "--peer", peer, "--threads", str(threads)]
    command = [sys.executable, "-m", "benchmarks.peers.single", *where]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=limit)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"not within {limit:.0f} s") from None
    if done.returncode:
        raise RunFailed(f"failed: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def results_of(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run what is asked for and not kept, and sum the set up."""
    results: dict[str, dict[str, Any]] = {}
    failures: dict[str, str] = {}
    digest = digest_of(arguments.data, name)
    for peer in EVERYONE:
        conditions = conditions_of(name, peer, digest, arguments.threads)
        if conditions is None:
            failures[peer] = "not installed"
            continue
        chosen = peer in arguments.peers
        kept = None if chosen and arguments.again else recall(arguments.cache, conditions)
        if kept is None and chosen:
            print(f"{name}: {peer} ...", file=sys.stderr, flush=True)
            try:
                result = run_alone(arguments.data, name, peer, arguments.threads, arguments.limit)
            except RunFailed as error:
                failures[peer] = str(error)
                continue
            kept = keep(arguments.cache, conditions, result)
        if kept is not None:
            results[peer] = kept
    return summary(name, results, failures)


def names(allowed: tuple[str, ...]) -> Any:
    """Parses names with commas between them."""

    def parse(text: str) -> list[str]:
        found = text.split(",")
        for name in found:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of: {', '.join(allowed)}")
        return found

    return parse


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", type=names(SETS), default=list(SETS))
    parser.add_argument("--peers", type=names(EVERYONE), default=list(EVERYONE))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds that a run may take")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--choose-quickest", action="store_true")
    parser.add_argument("--votes", choices=("free", "factorised"), default="free")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Run, then print a table a set, and all of it as JSON with --json."""
    arguments = read_arguments()
    if arguments.choose:
        for name in arguments.sets:
            print(json.dumps({name: choose(arguments.data, name, arguments.votes, arguments.threads)}), flush=True)
        return
    if arguments.choose_quickest:
        for name in arguments.sets:
            print(json.dumps({name: quickest(arguments.data, name, arguments.threads)}), flush=True)
        return
    if not arguments.json:
        print(machine_line())
    told = []
    for name in arguments.sets:
        told.append(results_of(name, arguments))
        if not arguments.json:
            Console(width=130).print(as_table(told[-1]))
            print("\n".join(verdict_lines(told[-1])), flush=True)
    if arguments.json:
        print(json.dumps({"machine": describe_machine(), "threads": arguments.threads, "sets": told}))


if __name__ == "__main__":
    main()
