"""Whether the server lives, and whether it can do its work."""

import logging
from collections.abc import Callable

from fastapi import APIRouter, Response, status
from pydantic import BaseModel, Field

from service.api.services import Needs

router = APIRouter(tags=["health"])
log = logging.getLogger(__name__)


class Alive(BaseModel):
    """The process answers."""

    status: str = "ok"


class PartHealth(BaseModel):
    """One part that the work needs."""

    ready: bool
    detail: str = Field(description="What is wrong, or ok.")


class Readiness(BaseModel):
    """Ready only if every part is."""

    ready: bool
    parts: dict[str, PartHealth]


@router.get("/healthz")
async def healthz() -> Alive:
    """Answers as long as the process lives."""
    return Alive()


@router.get("/readyz", responses={503: {"model": Readiness}})
def readyz(services: Needs, response: Response) -> Readiness:
    """Tries every part: store, artifacts, cluster, runner. 503 while one of them cannot work."""
    parts = {
        "store": _tried(services.store.check),
        "artifacts": _tried(services.artifacts.check),
        "cluster": _named(services.runner.cluster_trouble()),
        "runner": _named(services.runner.trouble()),
    }
    ready = all(part.ready for part in parts.values())
    if not ready:
        response.status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    return Readiness(ready=ready, parts=parts)


def _tried(check: Callable[[], None]) -> PartHealth:
    try:
        check()
    except Exception as error:
        log.exception("a readiness check failed")
        # The text of an unexpected error may hold what is nobody's business; its kind helps and does not.
        return PartHealth(ready=False, detail=f"fails ({type(error).__name__}); the server's log has the details")
    return PartHealth(ready=True, detail="ok")


def _named(trouble: str | None) -> PartHealth:
    return PartHealth(ready=trouble is None, detail=trouble or "ok")
