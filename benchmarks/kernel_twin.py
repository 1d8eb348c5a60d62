"""The kernel's twin in C (kernel_twin.c): compiled by gcc for this machine, one library a layout."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.histogram import BLOCK_SUMS, TILE_CHANNELS

SOURCE = Path(__file__).with_suffix(".c")
COMPILER = "gcc"
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


def compiler_line() -> str | None:
    """Which compiler the twin is made by, None where there is none."""
    path = shutil.which(COMPILER)
    if path is None:
        return None
    version = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    return f"{version} {' '.join(FLAGS[:2])}"


class Twin:
    """add_rows in C for `n_padded` sums a bin of rows of `pitch` gains; `folder` keeps the library while it is in
    use."""

    def __init__(self, n_padded: int, pitch: int, folder: Path) -> None:
        library = folder / f"twin_{n_padded}_{pitch}.so"
        tile = max(TILE_CHANNELS // n_padded, 1)
        sizes = (f"-DCHANNELS={n_padded}", f"-DPITCH={pitch}", f"-DTILE={tile}", f"-DBLOCK_SUMS={BLOCK_SUMS}")
        if not library.exists():  # loaded already: two shapes may have one layout
            subprocess.run([COMPILER, *FLAGS, *sizes, "-o", str(library), str(SOURCE)], check=True)
        self._add_rows = ctypes.CDLL(str(library)).add_rows
        self._add_rows.restype = None

    def add_rows(
        self,
        bins: NDArray[np.uint8],
        rows: NDArray[np.int32],
        gains: NDArray[np.int32],
        bin_start: NDArray[np.int64],
        feature_range: tuple[int, int],
        totals: NDArray[np.int64],
    ) -> None:
        """totals (OUT, flat) += gains (flat) of the rows, as boost_core.histogram.add_rows; arrays are contiguous."""
        self._add_rows(
            _pointer(bins),
            ctypes.c_int64(bins.shape[1]),
            _pointer(rows),
            ctypes.c_int64(rows.shape[0]),
            _pointer(gains),
            _pointer(bin_start),
            ctypes.c_int64(feature_range[0]),
            ctypes.c_int64(feature_range[1]),
            _pointer(totals),
        )


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
