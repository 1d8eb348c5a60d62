"""Times the way to a first job: importing the command line, compiling, and finding compiled kernels again.

    python -m benchmarks.startup [--data FOLDER] [--cases NAME ...] [--json]

Every measurement has a process of its own; cold ones also a home and a folder for kernels of their own. With --data on
letter.train.parquet of FOLDER, else on a synthetic table of its shape.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.rounds import CASES, write_synthetic

IMPORTS = 5
ROUNDS = 5
ALGORITHMS: dict[str, dict[str, Any]] = {
    "hamming_tree": {"name": "adaboost_mh", "weak_learner": {"kind": "hamming_tree", "max_leaves": 21}},
    "defaults": {"name": "adaboost_mh"},
    "adaboost_mm": {"name": "adaboost_mm"},
    "product": {"name": "adaboost_mh", "weak_learner": {"kind": "product"}},
    "real_tree": {"name": "adaboost_mh", "weak_learner": {"kind": "real_tree"}},
}
PROGRAM = """
import json, sys, time
began = time.perf_counter()
from service.requests import parse, prepare
from workers.in_process import train_in_process
from workers.job import NoProgress, TrainingJob
from pathlib import Path
imported = time.perf_counter()
told = []
class Listening(NoProgress):
    def phase(self, name):
        told.append(name)
jobs = []
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    plan, config = prepare(parse(json.loads(sys.argv[1])), Path(sys.argv[2]))
    outcome = train_in_process(TrainingJob("startup", 1, plan, config, 2), Listening())
    jobs.append({"seconds": time.perf_counter() - start, "compile": outcome.seconds["compile"]})
print(json.dumps({"import": imported - began, "jobs": jobs, "announced": "compile" in told}))
"""


def environment(home: Path) -> dict[str, str]:
    """A home of its own, and in it the folder for kernels."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "EDGEWISE_", "XDG_"))}
    return kept | {"HOME": str(home), "NUMBA_CACHE_DIR": str(home / "kernels")}


def import_seconds(home: Path) -> float:
    """Median of the command line's import and answer, `edgewise --version`, as a user waits for it."""
    command, found = [sys.executable, "-m", "service.cli", "--version"], []
    for _ in range(IMPORTS):
        began = time.perf_counter()
        subprocess.run(command, env=environment(home), check=True, capture_output=True)
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def slowest_imports(home: Path, most: int = 5) -> list[tuple[str, float]]:
    """Modules that the command line's import takes longest for, with what they import, in seconds."""
    command = [sys.executable, "-X", "importtime", "-m", "service.cli", "--version"]
    done = subprocess.run(command, env=environment(home), check=True, capture_output=True, text=True)
    rows = [line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:")][1:]
    found = sorted(((int(row[1]) * 1e-6, row[2].strip()) for row in rows), reverse=True)
    return [(name, seconds) for seconds, name in found[:most]]


def jobs(body: dict[str, Any], folder: Path, home: Path, n_jobs: int) -> dict[str, Any]:
    """Train so many jobs, one after another, in a new process."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(body), str(folder), str(n_jobs)]
    done = subprocess.run(command, env=environment(home), check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Of one algorithm: a job in a process that finds no kernels, two jobs in one that finds all of them."""
    data = {"train": "letter.train.parquet", "label": "label"}
    body = {"data": data, "algorithm": ALGORITHMS[name], "rounds": ROUNDS}
    with tempfile.TemporaryDirectory() as home:
        cold = jobs(body, folder, Path(home), 1)
        warm = jobs(body, folder, Path(home), 2)
    first, later = (job["seconds"] for job in warm["jobs"])
    return {
        "cold_seconds": cold["jobs"][0]["seconds"],
        "cold_compile_seconds": cold["jobs"][0]["compile"],
        "announced": cold["announced"],
        "warm_first_seconds": first,
        "warm_later_seconds": later,
        "warm_extra_seconds": first - later,
    }


def main() -> None:
    """Measure and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--cases", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.data or Path(name)
        if arguments.data is None:
            write_synthetic(folder / "letter.train.parquet", CASES[0])
        imported, slowest = import_seconds(Path(name)), slowest_imports(Path(name))
        if not arguments.json:
            print(f"edgewise --version {imported:.2f} s; {', '.join(f'{module} {s:.3f}' for module, s in slowest)}")
        found = {}
        for case in arguments.cases:
            found[case] = each = measure(case, folder)
            if not arguments.json:
                print(
                    f"{case:14} cold {each['cold_seconds']:.1f} s (compiling {each['cold_compile_seconds']:.1f}), warm "
                    f"{each['warm_first_seconds']:.2f} s, later {each['warm_later_seconds']:.2f} s, "
                    f"extra {each['warm_extra_seconds']:.2f} s"
                )
    if arguments.json:
        print(json.dumps({"machine": describe_machine(), "import_seconds": imported, "cases": found}))


if __name__ == "__main__":
    main()
