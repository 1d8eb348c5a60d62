"""Jobs: submit, list, read, follow, cancel, delete."""

import base64
import binascii
import logging
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response, status
from pydantic import BaseModel, ConfigDict, Field

from service.api.bodies import JsonBody, described_by
from service.api.job_answers import JobAnswer, JobDetailAnswer, JobListAnswer, RoundAnswer, RoundsAnswer
from service.api.services import Needs, Services
from service.errors import RequestRefused, WrongState
from service.job_states import JobState
from service.requests import TrainingRequest, parse
from service.sql_store import utc_now
from service.store import Job
from service.submission import SubmissionContext, submit
from workers.checkpoint_store import CheckpointStore, checkpoints_at, kept_rounds

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
log = logging.getLogger(__name__)
LARGEST_NUMBER = 2**63 - 1

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Names the request for ever: sent again with the same body it is the same job.",
    ),
]


@router.post("", status_code=status.HTTP_202_ACCEPTED, openapi_extra=described_by(TrainingRequest))
def submit_job(
    body: JsonBody, services: Needs, response: Response, idempotency_key: IdempotencyKey = None
) -> JobDetailAnswer:
    """Submit a training job. What can be found wrong is found now; the answer's Location is the job."""
    request = parse(body.json())
    job, is_new = submit(request, idempotency_key, _submission_context(services))
    if is_new:
        services.runner.wake()
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return _detail(job, services)


def _submission_context(services: Services) -> SubmissionContext:
    return SubmissionContext(services.store, services.registry, services.trainer, services.settings)


@router.get("")
def list_jobs(
    services: Needs,
    state: Annotated[JobState | None, Query(alias="status")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    page_token: Annotated[str | None, Query(max_length=100)] = None,
) -> JobListAnswer:
    """Jobs, the newest first."""
    before = None if page_token is None else _read_token(page_token)
    jobs = services.store.list_jobs(state, limit + 1, before)
    page = jobs[:limit]
    token = _make_token(page[-1].number) if len(jobs) > limit else None
    now, latest = utc_now(), services.store.latest_rounds(page)
    answers = [JobAnswer.of(job, now, latest.get(job.id)) for job in page]
    return JobListAnswer(jobs=answers, next_page_token=token)


@router.get("/{job_id}")
def read_job(job_id: str, services: Needs) -> JobDetailAnswer:
    """One job with its request and its history."""
    return _detail(services.store.get(job_id), services)


@router.get("/{job_id}/rounds")
def read_rounds(
    job_id: str,
    services: Needs,
    after: Annotated[int, Query(ge=0, le=LARGEST_NUMBER)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    every: Annotated[int, Query(ge=1, le=LARGEST_NUMBER, description="Only rounds whose number it divides.")] = 1,
) -> RoundsAnswer:
    """Rounds of the current run with a number above `after`. A new run begins at round 1 again."""
    run, entries = services.store.rounds(job_id, after, limit, every)
    last = entries[-1].round if entries else after
    return RoundsAnswer(run=run, rounds=[RoundAnswer.of(entry) for entry in entries], next_after=last)


@router.post("/{job_id}/cancel", status_code=status.HTTP_202_ACCEPTED)
def cancel_job(job_id: str, services: Needs) -> JobDetailAnswer:
    """Ask for a job's end. It is `cancelled` at once while queued, else when its workers are free."""
    job = services.store.request_cancel(job_id)
    services.runner.wake()
    return _detail(job, services)


class ResumeRequest(BaseModel):
    """How a job goes on."""

    model_config = ConfigDict(extra="forbid")

    rounds: Annotated[int | None, Field(ge=1, le=LARGEST_NUMBER, description="Rounds in all; null: as before.")] = None


@router.post("/{job_id}/resume", status_code=status.HTTP_202_ACCEPTED)
def resume_job(job_id: str, services: Needs, body: ResumeRequest | None = None) -> JobDetailAnswer:
    """Let a job that ended go on from its last checkpoint, also with more rounds than it had."""
    if not services.store.get(job_id).state.is_leased and not kept_rounds(_checkpoints(services), job_id):
        raise WrongState("the job has no checkpoint to go on from; submit it again")
    job = services.store.resume(job_id, body.rounds if body else None)
    services.runner.wake()
    return _detail(job, services)


@router.delete("/{job_id}", status_code=status.HTTP_204_NO_CONTENT)
def delete_job(job_id: str, services: Needs) -> None:
    """Forget a job that is over, with its rounds and checkpoints. Its model stays."""
    services.store.delete(job_id)
    try:
        _checkpoints(services).delete(job_id)
    except OSError:  # the job is gone all the same, and nothing finds its checkpoints any more
        log.warning("checkpoints of job %s are left over", job_id, exc_info=True)


def _checkpoints(services: Services) -> CheckpointStore:
    return checkpoints_at(services.settings.checkpoints)


def _detail(job: Job, services: Services) -> JobDetailAnswer:
    latest = services.store.latest_rounds([job]).get(job.id)
    answer = JobDetailAnswer.of(job, utc_now(), latest)
    return answer.with_history(job, services.store.transitions(job.id))


def _make_token(number: int) -> str:
    return base64.urlsafe_b64encode(b"j%d" % number).decode()


def _read_token(token: str) -> int:
    try:
        number = base64.urlsafe_b64decode(token)
        if number[:1] == b"j" and 0 <= int(number[1:]) <= LARGEST_NUMBER:
            return int(number[1:])
    except (binascii.Error, ValueError):
        pass
    raise RequestRefused([(("query", "page_token"), "is not a next_page_token of an earlier answer")])
