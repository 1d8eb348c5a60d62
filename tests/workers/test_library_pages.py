"""Pages of libraries go back to the system, and come again when they are needed."""

import mmap
from pathlib import Path

import numba
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workers.library_pages import SMAPS, give_back_libraries, read_only

LIBRARY = "/opt/my site/llvmlite/binding/libllvmlite.so"
SAMPLE = [
    (f"7f10-7f20 r--p 00000000 fe:00 5 {LIBRARY}", 0),
    (f"7f20-7f38 r-xp 00010000 fe:00 5                      {LIBRARY}", 0),
    (f"7f38-7f40 r--p 00028000 fe:00 5 {LIBRARY}", 8),  # written to when it was loaded
    (f"7f40-7f44 rw-p 00030000 fe:00 5 {LIBRARY}", 0),
    ("7f44-7f48 rw-p 00000000 00:00 0", 0),
    ("7f48-7f50 r--p 00000000 00:00 0", 0),
    ("7f50-7f58 r--p 00000000 fe:00 6 /data/rows.parquet", 0),
    ("7f58-7f60 r-xp 00000000 fe:00 7 /usr/lib/libarrow.so.2600.0.0", 0),
    ("7f60-7f68 r-xp 00000000 fe:00 7 /usr/lib/libarrow_flight.so.2600", 0),
    ("7f68-7f70 r--s 00000000 fe:00 8 /usr/lib/libparquet.so", 0),
]


def test_what_was_written_to_and_what_is_no_such_library_stays():
    lines = []
    for mapping, kilobytes in SAMPLE:
        lines += [f"{mapping}\n", "Size: 64 kB\n", "Rss: 16 kB\n", f"Anonymous: {kilobytes} kB\n", "VmFlags: rd mr\n"]
    assert list(read_only(lines)) == [(0x7F10, 0x7F20), (0x7F20, 0x7F38), (0x7F58, 0x7F60)]


def resident(start: int, stop: int) -> int:
    """Pages of a range that this process holds."""
    with Path("/proc/self/pagemap").open("rb") as pages:
        pages.seek(start // mmap.PAGESIZE * 8)
        entries = pages.read((stop - start) // mmap.PAGESIZE * 8)
    return sum(entry >> 63 for entry in memoryview(entries).cast("Q"))


def use_libraries(path: Path) -> None:
    """Compile, write and read."""
    double = numba.njit(lambda x: 2 * x)
    assert double(21) == 42
    pq.write_table(pa.table({"x": [1, 2]}), path)
    assert pq.read_table(path).column("x").to_pylist() == [1, 2]


@pytest.mark.skipif(not SMAPS.exists(), reason="only Linux tells of pages")
def test_libraries_whose_pages_are_gone_go_on_working(tmp_path: Path):
    use_libraries(tmp_path / "x.parquet")  # whoever trained in this process before may have given their pages back
    with SMAPS.open() as lines:
        ranges = list(read_only(lines))
    before = sum(resident(*each) for each in ranges)
    give_back_libraries()
    assert sum(resident(*each) for each in ranges) < before / 4
    use_libraries(tmp_path / "x.parquet")
