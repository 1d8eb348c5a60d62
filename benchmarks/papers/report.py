"""The tables: this engine's figures beside the papers', in Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from benchmarks.papers.store import entries
from benchmarks.papers.trials import SABERIAN_1, TITLES, Trial, trials

VERDICTS = {None: "", True: "yes", False: "**no**"}


def tables(names: Sequence[str]) -> Iterator[str]:
    """Each table with its title, rows in the order of the trials."""
    for name in names:
        yield f"### {TITLES[name]}\n"
        yield from lines(name, [trial for trial in trials() if trial.table == name])
        yield ""


def lines(name: str, rows: Iterable[Trial]) -> Iterator[str]:
    """Head and rows of a table."""
    found = entries(name)
    yield "| set | method | printed | here | bar | met | rounds | settings | s |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for trial in rows:
        entry = found.get(trial.key, {})
        figure = entry.get("figure")
        here = "not run" if figure is None else f"{figure:.2f}"
        bar = least_of(trial, found)
        verdict = VERDICTS[None if figure is None or bar is None else trial.meets_bar(figure, bar)]
        cells = [trial.data, trial.method, shown(trial.printed), here, shown(bar), verdict]
        cells += [str(entry.get("rounds", "")), settings(trial, entry), shown(entry.get("seconds"), 0)]
        yield f"| {' | '.join(cells)} |"


def least_of(trial: Trial, found: dict[str, dict[str, Any]]) -> float | None:
    """The bar; CD-MCBoost's is one-vs-all's figure too, where that is higher."""
    rival = found.get(f"{trial.data}/one-vs-all", {}).get("figure")
    if trial.table == SABERIAN_1 and trial.bar is not None and rival is not None:
        return max(trial.bar, float(rival))
    return trial.bar


def settings(trial: Trial, entry: dict[str, Any]) -> str:
    """What cross-validation chose, and its error."""
    if trial.grid is None or "choice" not in entry:
        return ""
    choice = entry["choice"]
    return f"{trial.grid.name} {choice[trial.grid.name]} ({choice['folds']} folds: {choice['error']:.2f})"


def shown(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"
