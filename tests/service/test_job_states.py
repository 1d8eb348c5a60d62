"""The table of transitions is whole, and no path through it leads anywhere it should not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import WrongState
from service.job_states import ALLOWED, SENTENCES, JobState, after_cancel, after_loss, check_transition

FINAL = {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}
LEASED = {JobState.STARTING, JobState.RUNNING, JobState.CANCELLING}


def test_every_state_has_a_sentence_and_a_row() -> None:
    assert set(SENTENCES) == set(ALLOWED) == set(JobState)
    assert all(state.sentence.endswith(".") for state in JobState)


def test_the_states_of_the_design() -> None:
    assert {state for state in JobState if state.is_final} == FINAL
    assert {state for state in JobState if state.is_leased} == LEASED
    for old, new in [
        (JobState.QUEUED, JobState.STARTING),
        (JobState.STARTING, JobState.RUNNING),
        (JobState.RUNNING, JobState.SUCCEEDED),
        (JobState.RUNNING, JobState.FAILED),
        (JobState.RUNNING, JobState.CANCELLING),
        (JobState.CANCELLING, JobState.CANCELLED),
        (JobState.RUNNING, JobState.PAUSED),
        (JobState.PAUSED, JobState.QUEUED),
    ]:
        check_transition(old, new)


@given(st.sampled_from(JobState), st.sampled_from(JobState))
def test_what_the_table_lacks_is_refused(old: JobState, new: JobState) -> None:
    if new in ALLOWED[old]:
        check_transition(old, new)
    else:
        with pytest.raises(WrongState, match=f"{old}.*{new}"):
            check_transition(old, new)


def test_every_state_can_come_to_an_end() -> None:
    ends = set(FINAL)
    for _ in JobState:
        ends |= {state for state in JobState if ALLOWED[state] & ends}
    assert ends == set(JobState)


@given(st.sampled_from(JobState))
def test_cancel_leads_towards_cancelled_or_is_refused(state: JobState) -> None:
    if state in {JobState.SUCCEEDED, JobState.FAILED}:
        with pytest.raises(WrongState, match=state):
            after_cancel(state)
        return
    new = after_cancel(state)
    assert new in {JobState.CANCELLING, JobState.CANCELLED}
    if new is not state:
        check_transition(state, new)
    assert (new is JobState.CANCELLING) == state.is_leased


@pytest.mark.parametrize("state", sorted(LEASED))
def test_a_lost_runner_leaves_no_leased_job(state: JobState) -> None:
    for new in after_loss(state):
        check_transition(state, new)
        state = new
    assert state in {JobState.QUEUED, JobState.CANCELLED}
