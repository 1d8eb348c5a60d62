"""Threads that share a kernel's blocks: each block is done once a publication, by whoever is free."""

import threading

import numba
import numpy as np
import pytest

from boost_core.crew import NOTHING, await_all, claim, dismiss, dismissed, finish, new_crew, publish

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
        block = claim(crew, n_blocks)
        while block != NOTHING:
            do_block(block, offer, done)
            finish(crew)
            block = claim(crew, n_blocks)
        await_all(crew, n_blocks)
        for block in range(n_blocks):
            wrong += done[block] != total
    dismiss(crew)
    return wrong


@numba.njit(nogil=True)
def help_out(crew, n_blocks, offer, done):
    """Returns how many blocks it did."""
    helped = 0
    while not dismissed(crew):
        block = claim(crew, n_blocks)
        if block != NOTHING:
            do_block(block, offer, done)
            finish(crew)
            helped += 1
    return helped


@pytest.mark.parametrize(("helpers", "n_blocks"), [(0, 3), (1, 1), (1, 7), (3, 5)])
def test_every_block_is_done_once_a_publication(helpers: int, n_blocks: int):
    crew, offer, done = new_crew(n_blocks), np.zeros(1, np.int64), np.zeros(n_blocks, np.int64)
    threads = [threading.Thread(target=help_out, args=(crew, n_blocks, offer, done)) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    wrong = lead(crew, n_blocks, offer, done)
    for thread in threads:
        thread.join()
    assert wrong == 0
    assert done.tolist() == [PUBLICATIONS * (PUBLICATIONS + 1) // 2] * n_blocks


def test_nothing_can_be_claimed_before_a_publication():
    assert claim(new_crew(4), 4) == NOTHING
