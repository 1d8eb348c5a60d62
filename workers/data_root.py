"""The only door to files: a path of a request, resolved and then checked to lie under the data root."""

from collections.abc import Sequence
from pathlib import Path

from workers.errors import DataError, DataNotFound, Location, PathRefused

PARQUET = ".parquet"
WILDCARDS = frozenset("*?[")


def resolve_paths(data_root: Path, texts: str | Sequence[str], loc: Location) -> tuple[str, ...]:
    """Absolute paths of the Parquet files that a request names, sorted, without repeats.

    texts: a file, a directory (its *.parquet files, recursively), a glob pattern, or a list of these, all relative to
    the data root. Links are followed first and the result is checked, so no link leads out of the root.
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
    if WILDCARDS & set(text):
        return _expand(root, text, loc)
    path = _inside(root, root / text, text, loc)
    if path.is_dir():
        return _list_folder(root, path, text, loc)
    if not path.is_file():
        raise DataNotFound(loc, f"{text!r}: no such file under the data root")
    return [str(path)]


def _list_folder(root: Path, folder: Path, text: str, loc: Location) -> list[str]:
    """A folder's Parquet files. Hive partitions would lose their column, so they are refused."""
    files = sorted(each for each in folder.rglob(f"*{PARQUET}") if each.is_file())
    partitioned = [each for each in files if any("=" in part for part in each.relative_to(folder).parts[:-1])]
    if partitioned:
        place = partitioned[0].relative_to(folder).parent
        raise DataError(
            loc, f"{text!r} has hive partitions ({str(place)!r}), which are not supported yet; list its files"
        )
    return _at_least_one([str(_inside(root, each, text, loc)) for each in files], text, loc)


def _expand(root: Path, pattern: str, loc: Location) -> list[str]:
    """Files that match a pattern. A pattern with '..' is refused before anything is listed."""
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise PathRefused(loc, f"{pattern!r}: a pattern must stay under the data root: no '..', not absolute")
    try:
        matches = sorted(root.glob(pattern))
    except ValueError as error:
        raise PathRefused(loc, f"{pattern!r} is not a pattern: {error}") from error
    files = [_inside(root, match, pattern, loc) for match in matches]
    return _at_least_one([str(each) for each in files if each.is_file()], pattern, loc)


def _inside(root: Path, path: Path, text: str, loc: Location) -> Path:
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise PathRefused(loc, f"{text!r} cannot be resolved: {error}") from error
    if not resolved.is_relative_to(root):
        raise PathRefused(loc, f"{text!r} is outside the data root; data are read from under it only")
    return resolved


def _at_least_one(files: list[str], text: str, loc: Location) -> list[str]:
    if not files:
        raise DataNotFound(loc, f"{text!r}: no Parquet file there")
    return files
