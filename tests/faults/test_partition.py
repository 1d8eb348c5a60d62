"""A member that no packet reaches any more, nor leaves: it lives, and nobody can tell it anything."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.namespaces import NetworkRefused, namespaces
from tests.faults.test_members_die import hash_alone, plan_in

pytestmark = [pytest.mark.alone, pytest.mark.faults]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def kernels(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiled here, so that the members find them."""
    hash_alone(plan_in(tmp_path_factory.mktemp("alone")))


def test_a_member_without_its_network_is_left_out_until_it_is_back(tmp_path: Path) -> None:
    try:
        with namespaces(2) as (first, second):
            command = ["ip", "netns", "exec", first, sys.executable, "-m", "tests.faults.partitioned"]
            done = subprocess.run(
                [*command, str(tmp_path), second], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
            )
    except NetworkRefused as refused:
        pytest.skip(f"network namespaces: {refused}")
    assert done.returncode == 0, done.stderr
