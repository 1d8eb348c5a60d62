"""What the histogram's inner loop becomes on a processor with vectors of 128 bits, cross-compiled for aarch64."""

import os
import re
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from boost_core.histogram import add_gains, add_rows
from boost_core.intrinsics import LANE, lanes_for
from boost_core.jit import JIT_DISABLED
from tests.builders import ROOT

TRIPLE = "aarch64-unknown-linux-gnu"
CHANNELS = 28


def for_aarch64(code: str) -> str:
    """Assembly of a module of LLVM code, optimised for a generic aarch64 processor.

    Atomic subtractions that were made for x86 already (NRT's, none of a kernel's loops) become calls.
    """
    code = re.sub(r"target datalayout = .*\n", "", code)
    code = re.sub(r'target triple = ".*"', f'target triple = "{TRIPLE}"', code)
    code = re.sub(r'"target-(cpu|features)"="[^"]*"', "", code)
    code = re.sub(r"llvm\.x86\.atomic\.(\w+)\.cc(\.\w+)?", r"x86_atomic_\1", code)
    for word in ("linkonce_odr ", "internal ", " immarg"):
        code = code.replace(word, "")
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu="generic", opt=3)
    module = llvm.parse_assembly(code)
    module.data_layout = str(machine.target_data)
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    assembly: str = machine.emit_assembly(module)
    return assembly


def histogram_assembly() -> str:
    """Of `add_gains` alone. Asks for a process in which it was not compiled before."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    lanes = lanes_for(CHANNELS)
    rows, gains, totals = np.zeros(0, np.int32), np.zeros(CHANNELS, np.int32), np.zeros(6 * CHANNELS, np.int64)
    add_rows(np.zeros((5, 3), np.uint8), rows, (gains, CHANNELS), np.arange(6), np.arange(5), lanes, totals, False)
    [code] = add_gains.inspect_llvm().values()
    assembly = for_aarch64(code)
    return assembly.split(".Lfunc_end0:")[0]


def has_target() -> bool:
    """Whether this LLVM can make code for aarch64."""
    llvm.initialize_all_targets()
    try:
        llvm.Target.from_triple(TRIPLE)
    except RuntimeError:
        return False
    return True


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
@pytest.mark.skipif(not has_target(), reason=f"this LLVM is built without {TRIPLE}")
def test_histograms_are_summed_by_vectors_of_128_bits(tmp_path: Path):
    program = "from tests.boost_core.test_aarch64 import histogram_assembly as show; print(show())"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    names = [line[0] for line in lines if line]
    # Two numbers an instruction, widened as they are added: for four features at once, and for the last ones.
    assert CHANNELS % LANE == 0
    assert sum(name in {"saddw", "saddw2"} for name in names) == (4 + 1) * CHANNELS // 2
    called = [line[1:] for line in lines if line and line[0] in {"bl", "blr"}]
    assert called in ([], [["memset"]])  # nothing is, but for the sums to be 0 at first
    assert "prfm" in names
