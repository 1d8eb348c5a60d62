"""`edgewise compile`: compiled kernels for the first job to find."""

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.cli_output import reporting

# Some kernels are compiled for a number of channels, in steps of 4. For other numbers the rest is found at least: half
# of the time (docs/performance.md).
COMMON_CLASSES = (26, 10, 3)


DEFAULT = "adaboost_mh"


@dataclass(frozen=True)
class Wanted:
    """For what to compile: numbers of classes; algorithms, each as NAME or NAME:WEAK_LEARNER; into which folder."""

    classes: list[int] | None = None
    algorithms: list[str] | None = None
    cache: Path | None = None


def run(wanted: Wanted, *, as_json: bool) -> None:
    """Compile what such jobs need, alone and in a gang. What is compiled already is only looked at."""
    with reporting(as_json) as output:
        if wanted.cache is not None:  # read when the first kernel is declared, which is later
            os.environ["NUMBA_CACHE_DIR"] = str(wanted.cache.absolute())
        from numba.core.event import install_recorder

        from boost_core.jit import CACHE

        counts, began = sorted(set(wanted.classes or COMMON_CLASSES), reverse=True), time.monotonic()
        algorithms = wanted.algorithms or [DEFAULT]
        before = _stored(CACHE)
        with install_recorder("numba:compile") as compiled:
            for n_classes in counts:
                for algorithm in algorithms:
                    with tempfile.TemporaryDirectory(prefix="edgewise-compile-") as name:
                        train_tiny(Path(name), n_classes, _algorithm(algorithm))
        seconds = time.monotonic() - began
        # also what a child has compiled (kernel_maker.py), where kernels are kept
        n_compiled = max(sum(event.is_start for _, event in compiled.buffer), _stored(CACHE) - before)
        answer = {"classes": counts, "algorithms": algorithms, "compiled": n_compiled, "seconds": seconds}
        text = f"kernels of {', '.join(algorithms)} for {counts} classes in {seconds:.1f} s, {n_compiled} of them new"
        output.answer(answer, text)


def _stored(cache: Path | None) -> int:
    """Compiled functions that there are in a folder."""
    return sum(1 for _ in cache.rglob("*.nbc")) if cache is not None else 0


def _algorithm(named: str) -> dict[str, Any]:
    name, _, learner = named.partition(":")
    return {"name": name, "weak_learner": {"kind": learner}} if learner else {"name": name}


def train_tiny(folder: Path, n_classes: int, algorithm: dict[str, Any]) -> None:
    """One job on a table of three rows a class, from reading to predictions, and what a gang needs besides."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from boost_core.prediction import predict, scores
    from boost_core.warm_up import WarmUp, warm_up
    from service.requests import parse, prepare
    from workers.in_process import train_in_process
    from workers.job import NoProgress, TrainingJob
    from workers.wire import warm_up as warm_up_wire

    labels = [row % n_classes for row in range(3 * n_classes)]
    columns = {f"x{bit}": [float(label >> bit & 1) for label in labels] for bit in range(3)}
    pq.write_table(pa.table({**columns, "label": labels}), folder / "tiny.parquet")
    data = {"train": "tiny.parquet", "valid": "tiny.parquet", "label": "label"}
    body = {"name": "tiny", "data": data, "algorithm": algorithm, "rounds": 2}
    plan, config = prepare(parse(body), folder)
    model = train_in_process(TrainingJob("compile", 1, plan, config), NoProgress()).model
    for n_rows in (1, 100):  # few rows walk, many go by tiles
        predict(model, np.zeros((n_rows, 3)))
        scores(model, np.zeros((n_rows, 3)))
    warm_up(config, n_classes, WarmUp(in_gang=True))
    warm_up_wire()
