"""Threads that share a kernel's blocks: each block is done once a publication, by whoever is free."""

import threading

import numba
import numpy as np
import pytest

from boost_core.crew import NOTHING, await_all, claim, dismiss, dismissed, finish, first_of, gather, new_crew, publish
from tests.calling import called

PUBLICATIONS = 3_000


@numba.njit(nogil=True)
def do_block(block, offer, done):
    """What is published is read only after a claim: a stale read would show in the sums."""
    done[block] += offer[0]


@numba.njit(nogil=True)
def lead(crew, n_blocks, offer, done):
    """Publish 1, 2, ...; returns how often a block's sum was wrong after all were awaited."""
    wrong = 0
    total = 0
    for number in range(1, PUBLICATIONS + 1):
        offer[0] = number
        total += number
        publish(crew)
        block = claim(crew, n_blocks, 0)
        while block != NOTHING:
            do_block(block, offer, done)
            finish(crew)
            block = claim(crew, n_blocks, 0)
        await_all(crew, n_blocks)
        for block in range(n_blocks):
            wrong += done[block] != total
    dismiss(crew)
    return wrong


@numba.njit(nogil=True)
def help_out(crew, n_blocks, first, offer, done):
    """Returns how many blocks it did."""
    helped = 0
    while not dismissed(crew):
        block = claim(crew, n_blocks, first)
        if block != NOTHING:
            do_block(block, offer, done)
            finish(crew)
            helped += 1
    return helped


@pytest.mark.parametrize(("helpers", "n_blocks"), [(0, 3), (1, 1), (1, 7), (3, 5)])
def test_every_block_is_done_once_a_publication(helpers: int, n_blocks: int):
    crew, offer, done = new_crew(n_blocks), np.zeros(1, np.int64), np.zeros(n_blocks, np.int64)
    firsts = [called(first_of)(helper + 1, helpers + 1, n_blocks) for helper in range(helpers)]
    threads = [threading.Thread(target=help_out, args=(crew, n_blocks, first, offer, done)) for first in firsts]
    for thread in threads:
        thread.start()
    wrong = lead(crew, n_blocks, offer, done)
    for thread in threads:
        thread.join()
    assert wrong == 0
    assert done.tolist() == [PUBLICATIONS * (PUBLICATIONS + 1) // 2] * n_blocks


def test_nothing_can_be_claimed_before_a_publication():
    assert called(claim)(new_crew(4), 4, 0) == NOTHING


def test_everybody_begins_with_blocks_of_its_own_and_takes_the_others_too():
    crew = new_crew(8)
    called(publish)(crew)
    assert [called(first_of)(thread, 3, 8) for thread in range(3)] == [0, 2, 5]
    assert [called(claim)(crew, 8, 5) for _ in range(9)] == [5, 6, 7, 0, 1, 2, 3, 4, NOTHING]


def test_a_crew_works_again_on_other_blocks():
    crew = new_crew(5)
    for n_blocks in (2, 5, 3):
        called(gather)(crew)
        assert not called(dismissed)(crew)
        called(publish)(crew)
        assert sorted(called(claim)(crew, n_blocks, 1) for _ in range(n_blocks)) == list(range(n_blocks))
        assert called(claim)(crew, n_blocks, 1) == NOTHING
        called(dismiss)(crew)
        assert called(dismissed)(crew)
