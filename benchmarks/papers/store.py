"""The committed figures: a JSON file a table under results/, an entry a cell, so that one set can be run alone."""

import json
from pathlib import Path
from typing import Any

from benchmarks.papers.trials import Trial

RESULTS = Path(__file__).parent / "results"


def entries(table: str) -> dict[str, dict[str, Any]]:
    """All entries of a table by "set/method"; {} if nothing was run yet."""
    path = RESULTS / f"{table}.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def keep(trial: Trial, **values: Any) -> None:
    """Replace some values of a cell's entry. Two runs of the same table at once would lose entries."""
    table = entries(trial.table)
    table[trial.key] = {**table.get(trial.key, {}), **values}
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(table, indent=1, sort_keys=True)
    (RESULTS / f"{trial.table}.json").write_text(f"{text}\n")
