"""The header of a message."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boost_core.errors import CollectiveError
from workers.messages import DTYPES, HEADER, Header, Kind, Place, dtype_code, job_digest

small = st.integers(0, 2**32 - 1)
large = st.integers(0, 2**64 - 1)
places = st.builds(Place, st.binary(min_size=16, max_size=16), small, small, small)
headers = st.builds(Header, places, st.sampled_from(Kind), st.integers(0, len(DTYPES) - 1), large, large)


@given(headers)
def test_a_header_survives_the_wire(header: Header) -> None:
    packed = header.pack()
    assert len(packed) == HEADER.size == 52
    assert Header.unpack(packed) == header


@pytest.mark.parametrize("place", [0, 4])
def test_another_protocol_or_version_is_refused(place: int) -> None:
    packed = bytearray(Header(Place(job_digest("a"), 1, 2, 3), Kind.SUM, 0, 4, 5).pack())
    packed[place] ^= 1
    with pytest.raises(CollectiveError, match="run the same release of edgewise on all workers"):
        Header.unpack(packed)


def test_every_dtype_has_its_own_code() -> None:
    assert [dtype_code(dtype) for dtype in DTYPES] == list(range(len(DTYPES)))
    with pytest.raises(CollectiveError, match="float16 cannot be sent"):
        dtype_code(np.float16)


def test_jobs_are_told_apart() -> None:
    assert len({job_digest(f"job-{number}") for number in range(1000)}) == 1000
    assert len(job_digest("")) == 16


def test_a_place_is_read_by_people() -> None:
    place = Place(job_digest("letters"), 2, 7, 3)
    assert str(place) == f"(job {job_digest('letters').hex()[:8]}, run 2, round 7, step 3)"
