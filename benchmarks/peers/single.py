"""One training run, in the process that is started for it: prints a JSON object as the last line.

python -m benchmarks.peers.single --data FOLDER --set NAME --peer NAME [--threads 2]
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.training import run
from benchmarks.peers.methods import PEERS, Peer
from benchmarks.peers.settings import SETTINGS
from benchmarks.peers.tables import SETS, load, paths_of

EDGEWISE = "edgewise"
PREPARATION = ("read", "bin")  # phases that come before rounds, besides compilation


def run_peer(peer: Peer, data: Path, name: str, threads: int) -> dict[str, Any]:
    """Seconds of training, of all threads' processor time in it, and the test rows' error, a fraction. Where others
    share the machine, processor seconds over threads are what training would at least have taken alone."""
    train, test, n_classes = load(data, name)
    peer.load()
    started, used = time.perf_counter(), time.process_time()
    predict = peer.fit(train, n_classes, threads)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    wrong = int(np.count_nonzero(predict(test.features).astype(np.int64) != test.classes))
    return {"seconds": seconds, "processor_seconds": used, "error": wrong / test.classes.shape[0]}


def run_edgewise(data: Path, name: str, threads: int) -> dict[str, Any]:
    """The test rows' error after every round, its seconds (following the test rows not included), and what comes
    before rounds. A training of one round goes before: what it took longer is compilation, or loading of kernels."""
    train, test = paths_of(data, name)
    request = SETTINGS[name].request()
    first = run({**request, "rounds": 1}, train, test, threads)
    outcome = run(request, train, test, threads)
    prepare = sum(outcome.seconds[phase] for phase in PREPARATION)
    longer = first.seconds["total"] - prepare - outcome.rounds[0].seconds
    return {
        "errors": [each.record.valid_error for each in outcome.rounds],
        "round_seconds": [each.seconds for each in outcome.rounds],
        "prepare_seconds": prepare,
        "compile_seconds": max(longer, 0.0),
        "ended": str(outcome.stop_reason),
        "peak_memory_mb": round(outcome.peak_memory_bytes / 1e6),
    }


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=SETS, required=True, dest="name")
    parser.add_argument("--peer", choices=[*PEERS, EDGEWISE], required=True)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    where = (arguments.data, arguments.name, arguments.threads)
    print(json.dumps(run_edgewise(*where) if arguments.peer == EDGEWISE else run_peer(PEERS[arguments.peer], *where)))


if __name__ == "__main__":
    main()
