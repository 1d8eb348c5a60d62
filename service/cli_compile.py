"""`edgewise compile`: compiled kernels for the first job to find."""

import tempfile
import time
from pathlib import Path

from service.cli_output import reporting

# Some kernels are compiled for a number of channels, in steps of 4. For other numbers the rest is found at least: half
# of the time (42 s for the first, 25 s alone with 26, 10 s for 10, 2 s for 3).
COMMON_CLASSES = (26, 10, 3)


def run(classes: list[int] | None, *, as_json: bool) -> None:
    """Compile what a job with the defaults needs, alone and in a gang. What is compiled already is only looked at."""
    with reporting(as_json) as output:
        counts, began = sorted(set(classes or COMMON_CLASSES), reverse=True), time.monotonic()
        for n_classes in counts:
            with tempfile.TemporaryDirectory(prefix="edgewise-compile-") as name:
                train_tiny(Path(name), n_classes)
        seconds = time.monotonic() - began
        output.answer({"classes": counts, "seconds": seconds}, f"kernels for {counts} classes in {seconds:.1f} s")


def train_tiny(folder: Path, n_classes: int) -> None:
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
    body = {"name": "tiny", "data": data, "algorithm": {"name": "adaboost_mh"}, "rounds": 2}
    plan, config = prepare(parse(body), folder)
    model = train_in_process(TrainingJob("compile", 1, plan, config), NoProgress()).model
    for n_rows in (1, 100):  # few rows walk, many go by tiles
        predict(model, np.zeros((n_rows, 3)))
        scores(model, np.zeros((n_rows, 3)))
    warm_up(config, n_classes, WarmUp(in_gang=True))
    warm_up_wire()
