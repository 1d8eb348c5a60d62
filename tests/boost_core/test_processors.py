"""The same bits from other machine code: a generic processor's, and none at all with the JIT off."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import ROOT, bin_table, config_for, forest_arrays, make_table, scores_by_round, train_alone
from tests.reference import Options

KERNEL_TESTS = Path(__file__).parent / "kernels"
WHOLE_RUNS = [Path(__file__).with_name(name) for name in ("test_row_weights.py", "test_label_sets.py")]


def small_model(rounds: int) -> str:
    """Digest of a trained forest and of its scores."""
    binned = bin_table(make_table(300, 4, 5, seed=21))
    result = train_alone(binned, config_for(Options(max_leaves=6, free=True), rounds))
    digest = hashlib.sha256(repr(sorted(forest_arrays(result.forest).items())).encode())
    digest.update(repr(result.records).encode())
    digest.update(scores_by_round(result.forest, binned.table.X)[-1].tobytes())
    return digest.hexdigest()


def run_python(arguments: list[str], **environment: str) -> str:
    """Standard output of a Python process in the repository's root."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=variables | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    return done.stdout


def digest_in_another_process(rounds: int, **environment: str) -> str:
    program = f"from tests.boost_core.test_processors import small_model; print(small_model({rounds}))"
    return run_python(["-c", program], **environment).strip()


@pytest.mark.slow
def test_code_for_a_generic_processor_gives_the_same_model(tmp_path: Path):
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert digest_in_another_process(60, **generic) == small_model(60)


def test_without_the_jit_the_model_is_the_same(tmp_path: Path):
    assert digest_in_another_process(2, NUMBA_DISABLE_JIT="1") == small_model(2)


def test_without_the_jit_every_kernel_follows_its_twin():
    options = ["-q", "-p", "no:cacheprovider", "--no-header"]
    output = run_python(["-m", "pytest", str(KERNEL_TESTS), *options], NUMBA_DISABLE_JIT="1")
    assert " passed" in output
    assert "skipped" not in output


def test_without_the_jit_weights_and_label_sets_follow_the_formulas():
    options = ["-q", "-p", "no:cacheprovider", "--no-header"]
    output = run_python(["-m", "pytest", *map(str, WHOLE_RUNS), *options], NUMBA_DISABLE_JIT="1")
    assert " passed" in output
    assert "skipped" not in output
