"""The only door to files: a path of a request, resolved and then checked to lie under the data root."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from workers.errors import DataError, DataNotFound, Location, PathRefused

PARQUET = ".parquet"
WILDCARDS = frozenset("*?[")


def resolve_paths(data_root: Path, texts: str | Sequence[str], loc: Location) -> tuple[str, ...]:
    """Absolute paths of the Parquet files that a request names, sorted, without repeats.

    texts: a file, a directory (its *.parquet files, recursively), a glob pattern, or a list of these, relative to the
    data root; an absolute path is allowed if it lies under the root. Links are followed first and the result is
    checked, so no link leads out of the root.
    Errors: PathRefused, DataNotFound, each naming the text and its place in the request (loc).
    """
    root = data_root.resolve()
    if isinstance(texts, str):
        return tuple(sorted(set(_resolve_one(root, texts, loc))))
    found = {path for place, text in enumerate(texts) for path in _resolve_one(root, text, (*loc, place))}
    if not found:
        raise DataNotFound(loc, "names no file; give at least one path")
    return tuple(sorted(found))


def _resolve_one(root: Path, text: str, loc: Location) -> list[str]:
    if "://" in text:
        scheme = text.split("://", 1)[0]
        raise PathRefused(loc, f"{text!r}: the scheme {scheme!r} is not supported yet; give a path under the data root")
    if "\0" in text or not text.strip():
        raise PathRefused(loc, f"{text!r} is not a path")
    try:
        return _find(root, text, loc)
    except (OSError, RuntimeError, ValueError) as error:
        raise PathRefused(loc, f"{text!r} cannot be looked up: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Why a look-up failed, without the absolute path that the system's messages show."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, RecursionError):
        return "it has too many parts"
    return "its links lead in a circle" if isinstance(error, RuntimeError) else str(error)


def _find(root: Path, text: str, loc: Location) -> list[str]:
    """The files of one text. A file of exactly that name comes before what the name matches as a pattern."""
    path = _inside(root, root / text, text, loc)
    if path.is_file():
        return [str(path)]
    if path.is_dir():
        return _list_folder(root, path, text, loc)
    if WILDCARDS & set(text):
        return _expand(root, text, loc)
    raise DataNotFound(loc, f"{text!r}: no such file under the data root")


def _list_folder(root: Path, folder: Path, text: str, loc: Location) -> list[str]:
    files = sorted(each for each in folder.rglob(f"*{PARQUET}") if each.is_file())
    _refuse_partitions(folder, files, text, loc)
    return _at_least_one([str(_inside(root, each, text, loc)) for each in files], text, loc)


def _expand(root: Path, pattern: str, loc: Location) -> list[str]:
    """Files that match a pattern. A pattern with '..' is refused before anything is listed."""
    parts = Path(pattern).parts
    if Path(pattern).is_absolute() or ".." in parts:
        raise PathRefused(loc, f"{pattern!r}: a pattern must stay under the data root: no '..', not absolute")
    start = root.joinpath(*takewhile(lambda part: not WILDCARDS & set(part), parts))
    _inside(root, start, pattern, loc)
    matches = sorted(root.glob(pattern))
    files = [path for match in matches if (path := _inside(root, match, pattern, loc)).is_file()]
    _refuse_partitions(start, matches, pattern, loc)
    return _at_least_one([str(each) for each in files], pattern, loc)


def _refuse_partitions(start: Path, files: Sequence[Path], text: str, loc: Location) -> None:
    """Hive partitions would silently lose their column: errors if a folder between `start` and a file is one."""
    for file in files:
        place = file.relative_to(start).parent
        if any("=" in part for part in place.parts):
            raise DataError(
                loc, f"{text!r} has hive partitions ({str(place)!r}), which are not supported yet; list its files"
            )


def _inside(root: Path, path: Path, text: str, loc: Location) -> Path:
    """The path with its links followed. Errors: PathRefused if it is not under the root."""
    resolved = path.resolve()
    if not resolved.is_relative_to(root):
        raise PathRefused(loc, f"{text!r} is outside the data root; data are read from under it only")
    return resolved


def _at_least_one(files: list[str], text: str, loc: Location) -> list[str]:
    if not files:
        raise DataNotFound(loc, f"{text!r}: no Parquet file there")
    return files
