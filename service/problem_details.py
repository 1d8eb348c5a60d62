"""Errors as problem details (RFC 9457): the one shape in which an error leaves the service."""

from typing import Any

from pydantic import BaseModel, Field

from service.errors import MemoryShort, Rule, is_deliberate, problems_of, rule_for
from service.safe_json import clean_text

MEDIA_TYPE = "application/problem+json"
UNEXPECTED = "The server failed on this request; its log has the details."


class Place(BaseModel):
    """One thing that is wrong, and where."""

    loc: list[str | int] = Field(description="Keys into the request, outermost first.")
    message: str = Field(description="What is wrong, with the value, and what to do.")


class MemoryFigures(BaseModel):
    """What a job needs and what there is."""

    needed_bytes: int = Field(description="Estimated, on each worker.")
    largest_worker_bytes: int = Field(description="Memory of the largest worker.")
    workers_needed: int | None = Field(description="Workers of that size that would do; null: no number would.")


class ProblemDetails(BaseModel):
    """An error (RFC 9457, application/problem+json)."""

    type: str = Field(description="URI of the kind of problem.")
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status code.")
    detail: str = Field(description="What happened this time.")
    errors: list[Place] = Field(default=[], description="The single mistakes, where the problem has places.")
    memory: MemoryFigures | None = Field(default=None, description="Of urn:edgewise:problem:memory-short only.")

    def content(self) -> dict[str, Any]:
        """JSON-ready; members that only some problems have are left out of the others."""
        return self.model_dump(exclude=None if self.memory else {"memory"})


def describe(error: BaseException) -> ProblemDetails:
    """Problem details of any error. The text of an error that nobody wrote for callers is kept inside."""
    rule = rule_for(error)
    detail = str(error) if is_deliberate(error) else UNEXPECTED
    places = [
        Place(loc=[clean_text(key) if isinstance(key, str) else key for key in loc], message=clean_text(message))
        for loc, message in problems_of(error)
    ]
    problem = from_rule(rule, clean_text(detail) or rule.title, places)
    if isinstance(error, MemoryShort):
        problem.memory = MemoryFigures(
            needed_bytes=error.needed_bytes,
            largest_worker_bytes=error.largest_bytes,
            workers_needed=error.workers_needed,
        )
    return problem


def from_rule(rule: Rule, detail: str, places: list[Place] | None = None) -> ProblemDetails:
    """Problem details of a row of the table."""
    return ProblemDetails(type=rule.type, title=rule.title, status=rule.status, detail=detail, errors=places or [])
