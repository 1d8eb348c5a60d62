"""Opens a Parquet file, and says what is wrong with it as an error of the data."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workers.errors import DataError, Location

# Of a column in a row group, bytes: one that takes more is read by few at a time. Arrow reads it as a whole otherwise,
# and where that is more than the nearer caches hold, its bytes come from memory once more when they are decoded.
LARGE_CHUNK, FEW_BYTES = 1 << 19, 1 << 16
MOST_NAMED = 5  # names listed in a message before it says how many more there are


def has_large_chunks(footer: pq.FileMetaData) -> bool:
    """Whether columns of the first row group, which the others resemble, take many bytes each."""
    return bool(
        footer.num_row_groups > 0
        and footer.row_group(0).total_byte_size > LARGE_CHUNK * max(footer.row_group(0).num_columns, 1)
    )


def opened(path: str, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """The one place where files are opened. footer: what was read of it before; None = read it, for little else.

    Without a memory map: a file cut short while it is read must give an error, not a signal that ends the process.
    Without Arrow's reading ahead: its own threads would read, beside those that a member was given, each of which waits
    for them at every call, and all that a call reads would be held until it ends.
    """
    buffer_size = FEW_BYTES if footer is not None and has_large_chunks(footer) else 0
    return pq.ParquetFile(path, metadata=footer, buffer_size=buffer_size, pre_buffer=False)


@contextmanager
def open_parquet(path: str, loc: Location, footer: pq.FileMetaData | None = None) -> Iterator[pq.ParquetFile]:
    """The file, open inside the block. Errors: DataError, as `refusing`."""
    with refusing(path, loc), opened(path, footer) as parquet:
        yield parquet


@contextmanager
def refusing(path: str, loc: Location) -> Iterator[None]:
    """Turns what Arrow raises inside the block, which reads nothing but this file, into a DataError."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        folder = path.removesuffix(file_name(path))
        message = f"{file_name(path)!r} cannot be read as Parquet: {reason.replace(folder, '')}"
        raise DataError(loc, message) from error


def file_name(path: str) -> str:
    """The name by which messages call a file: its folders are nobody's business."""
    return path.rsplit("/", 1)[-1]


def check_distinct_names(schema: pa.Schema, path: str, loc: Location) -> None:
    """Errors: DataError if two columns of a file have one name."""
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:
        raise DataError(loc, f"{file_name(path)!r} has columns of the same name: {named(repeated)}; rename them")


def row_groups(parquet: pq.ParquetFile) -> tuple[int, ...]:
    """Rows of each row group of an open file."""
    footer = parquet.metadata
    return tuple(footer.row_group(group).num_rows for group in range(footer.num_row_groups))


def named(names: Sequence[Any]) -> str:
    """A list of names for a message, cut short where it is long."""
    return listed([repr(name) for name in names])


def listed(texts: Sequence[str]) -> str:
    """A list of texts for a message, cut short where it is long."""
    shown = ", ".join(texts[:MOST_NAMED])
    return shown if len(texts) <= MOST_NAMED else f"{shown} and {len(texts) - MOST_NAMED} more"
