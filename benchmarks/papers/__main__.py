"""Trains what the papers printed figures of, and shows both.

    python -m benchmarks.papers --data FOLDER [--table NAME ...] [--set NAME ...] [--method TEXT]
                              [--threads 2] [--choose]
    python -m benchmarks.papers --show

FOLDER holds NAME.train.parquet and NAME.test.parquet with a column `label`. Sizes and rounds that the papers do not
give were chosen by cross-validation on the training rows; the choices are kept with the results in
benchmarks/papers/results, and made again with --choose or where there is none.
"""

import argparse
import time
from pathlib import Path

from benchmarks.machine import machine_line
from benchmarks.papers import store
from benchmarks.papers.choosing import choose
from benchmarks.papers.report import tables
from benchmarks.papers.training import run
from benchmarks.papers.trials import TITLES, Trial, trials


def run_trial(trial: Trial, arguments: argparse.Namespace) -> None:
    """Choose if need be, train on all training rows, look at the test rows once, keep the figure."""
    rounds, setting = trial.rounds, None
    if trial.grid is not None:
        choice = store.entries(trial.table).get(trial.key, {}).get("choice")
        if choice is None or arguments.choose:
            choice = choose(trial, arguments.data, arguments.folds, arguments.threads)
            store.keep(trial, choice=choice)
        rounds, setting = choice["rounds"], choice[trial.grid.name]
    train, test = (arguments.data / f"{trial.data}.{part}.parquet" for part in ("train", "test"))
    outcome = run(trial.request(rounds, setting), train, test, arguments.threads)
    error = outcome.rounds[-1].record.valid_error
    assert error is not None
    store.keep(
        trial,
        figure=round(100.0 * (error if trial.of_errors else 1.0 - error), 3),
        rounds=len(outcome.rounds),
        ended=str(outcome.stop_reason),
        seconds=round(outcome.seconds["train"], 1),
        peak_memory_mb=round(outcome.peak_memory_bytes / 1e6),
    )


def main() -> None:
    """Run the chosen cells one after another, then print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--table", nargs="+", choices=list(TITLES), default=list(TITLES))
    parser.add_argument("--set", nargs="+", default=None, dest="sets")
    parser.add_argument("--method", default="", help="part of a method's name")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.show:
        parser.error("--data is missing: the folder of the Parquet files (or --show for the figures so far)")
    for trial in trials() if not arguments.show else ():
        wanted = arguments.sets is None or trial.data in arguments.sets
        if trial.table in arguments.table and wanted and arguments.method in trial.method:
            began = time.monotonic()
            run_trial(trial, arguments)
            print(f"{trial.table} {trial.key}: {time.monotonic() - began:.0f} s", flush=True)
    print(machine_line())
    print("\n".join(tables(arguments.table)))


if __name__ == "__main__":
    main()
