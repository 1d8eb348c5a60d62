"""What tests of the engine share."""

import pytest

from tests.builders import BinnedTable, bin_table, read_real_table


@pytest.fixture(scope="session")
def pendigits() -> BinnedTable:
    """7,494 rows of 16 features and 10 classes."""
    return bin_table(read_real_table("pendigits", "train"))
