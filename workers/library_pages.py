"""Gives back the pages of libraries that a member needed to start: LLVM's to load kernels, Arrow's to read.

    smaps   7f12..-7f16.. r-xp .. /../libllvmlite.so    Rss: 41000 kB    Anonymous: 0 kB    -> may go
            7f16..-7f17.. r--p .. /../libllvmlite.so    Rss:  2000 kB    Anonymous: 2000 kB -> stays: it was written to

They are copies of what is in the file: whoever calls into a library again finds its pages there again, from the
system's cache. Training does not, but for a kernel or two that are loaded late.
"""

import ctypes
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

# Loaded whole before anything here can run, and never unloaded: of a library that another thread is just loading, pages
# could be written to between being looked at and being given back.
LIBRARIES = re.compile(r".*/lib(llvmlite|arrow|arrow_compute|parquet)\.[^/]*")
MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (r-[x-]p) \S+ \S+ \S+ +(\S.*)")
MADV_DONTNEED = 4  # Linux's number
SMAPS = Path("/proc/self/smaps")


def give_back_libraries() -> None:
    """Give back what can be read from the libraries' files again; only Linux tells which pages these are."""
    system = ctypes.CDLL(None) if sys.platform == "linux" else None
    if system is None or not SMAPS.exists():
        return
    with SMAPS.open() as lines:
        found = list(read_only(lines))
    for start, stop in found:
        system.madvise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), MADV_DONTNEED)


def read_only(smaps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where LIBRARIES lie that nothing can be written to and nothing was, [start, stop); smaps: lines as of SMAPS."""
    place: tuple[int, int] | None = None
    for line in smaps:
        if (found := MAPPING.fullmatch(line.rstrip("\n"))) and LIBRARIES.fullmatch(found[4]):
            place = int(found[1], 16), int(found[2], 16)
        elif line.startswith("Anonymous:"):
            if place is not None and int(line.split()[1]) == 0:
                yield place
            place = None
