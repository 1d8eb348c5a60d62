"""What tests of the engine share."""

import pytest
from numba.core.caching import NullCache

from boost_core import crew
from boost_core.jit import JIT_DISABLED
from tests.builders import BinnedTable, bin_table, read_real_table


@pytest.fixture(scope="session")
def pendigits() -> BinnedTable:
    """7,494 rows of 16 features and 10 classes."""
    return bin_table(read_real_table("pendigits", "train"))


@pytest.fixture
def kernels_of_tests_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that hand tasks of their own to the crew: a cache that names a type of the tests cannot be read by a
    program that does not find them, as `edgewise` is."""
    if not JIT_DISABLED:
        monkeypatch.setattr(crew._do_part, "_cache", NullCache())
