"""The one place that says how kernels are compiled.

Kernels release the GIL and run in plain threads (see team.py), never in Numba's own thread pools: those abort
the process when two threads of it train at once. There is no fast-math anywhere: every kernel must give the
same bits on every processor, and LLVM contracts or reorders nothing unless it is allowed to.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config


def _writable(folder: Path) -> bool:
    """Whether compiled kernels can be stored in a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _sources_digest() -> str:
    """Names this release's kernels: Numba notices a change in a kernel's own file only, not in what it calls."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _choose_cache() -> Path | None:
    """Pick a folder for compiled kernels; without a writable one nothing is cached and nothing fails.

    NUMBA_CACHE_DIR names it where set; else it lies beside this file, or in the home directory.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folders = (
        [Path(chosen)]
        if chosen
        else [
            Path(__file__).parent / "__pycache__",
            Path.home() / ".cache" / "edgewise",
        ]
    )
    for folder in folders:
        kernels = folder / f"kernels-{_sources_digest()}"
        if _writable(kernels):
            config.CACHE_DIR = str(kernels)
            return kernels
    return None


JIT_DISABLED = bool(config.DISABLE_JIT)
CACHE = _choose_cache()  # of this release's kernels
CACHED = CACHE is not None

compiled: Any = njit  # whose types do not know the options for wrappers
# No wrappers that other compiled code would call through a pointer: nothing does, and each takes time to compile.
COMMON = {"nogil": True, "cache": CACHED, "error_model": "numpy", "boundscheck": False, "no_cfunc_wrapper": True}
# Nor counts of references to arrays: each view, argument and result of tuples of many arrays would have as many as
# there are arrays, most of them only to be removed again. Who calls holds them. What allocates an array cannot do
# without: such kernels and steps are counted ones, and no others may return an array.
UNCOUNTED, COUNTED = {**COMMON, "_nrt": False}, {**COMMON, "_nrt": True}  # said, or it is that of what calls
# What is implemented for a type of argument (objective.py) is compiled as part of the kernel that calls it.
CHOSEN: Any = {name: UNCOUNTED[name] for name in ("error_model", "no_cfunc_wrapper", "_nrt")}
kernel = compiled(**UNCOUNTED)
counted_kernel = compiled(**COUNTED)
# What only other kernels call (Python must not): nor a wrapper for Python, which takes 30 ms to compile, as long as the
# code of a small step, and for tuples of many arrays longer than any. Tests call steps by way of tests/calling.py.
step = compiled(**UNCOUNTED, no_cpython_wrapper=True)
counted_step = compiled(**COUNTED, no_cpython_wrapper=True)
# A step with one place where it is called: it becomes a part of what calls it before types are found. Every kernel
# optimises and writes once more whatever lies below it, so that each level of calls takes a second or so to compile.
# Not what stands in several places of others that become parts: Numba copies it anew at each level, which takes longer.
inlined_step = compiled(**UNCOUNTED, no_cpython_wrapper=True, inline="always")
# Small functions used inside kernels: inlined by LLVM, so that loops around them can be vectorised.
inner = compiled(**UNCOUNTED, forceinline=True, no_cpython_wrapper=True)
counted_inner = compiled(**COUNTED, forceinline=True, no_cpython_wrapper=True)
inner_kernel = compiled(**UNCOUNTED, forceinline=True)  # that Python calls, too
