"""Answers and errors as bytes: always valid JSON, errors always problem details."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from boost_core.errors import BoostError
from service.errors import RequestRefused, ServiceError
from service.problem_details import MEDIA_TYPE, ProblemDetails, describe
from service.safe_json import clean_text, encode
from workers.errors import WorkersError

log = logging.getLogger(__name__)
# For the OpenAPI description of every endpoint.
PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem (RFC 9457)",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    },
}


class SafeJson(JSONResponse):
    """JSON without NaN and infinities: they become null."""

    def render(self, content: Any) -> bytes:
        return encode(content)


def render_problem(problem: ProblemDetails, headers: dict[str, str] | None = None) -> Response:
    """Problem details as a response."""
    return Response(encode(problem.content()), problem.status, headers, media_type=MEDIA_TYPE)


def install_error_handlers(app: FastAPI) -> None:
    """Every error of the application leaves it as problem details."""
    for kind in (ServiceError, WorkersError, BoostError):
        app.add_exception_handler(kind, _deliberate)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _deliberate(request: Request, error: Exception) -> Response:
    problem = describe(error)
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("%s %s: %s", request.method, request.url.path, error)
    return render_problem(problem)


async def _invalid(_request: Request, error: Exception) -> Response:
    """A query parameter, path parameter or header that FastAPI refused."""
    assert isinstance(error, RequestValidationError)
    problems = [(tuple(item["loc"]), f"{item['msg']}, got {item.get('input')!r:.100}") for item in error.errors()]
    return render_problem(describe(RequestRefused(problems)))


async def _http(request: Request, error: Exception) -> Response:
    """What routing refuses: an unknown path (404), another method (405)."""
    assert isinstance(error, HTTPException)
    title = HTTPStatus(error.status_code).phrase
    detail = error.detail
    if detail == title:
        detail = f"{title}: {request.method} {request.url.path:.200}"
    problem = ProblemDetails(
        type="about:blank", title=title, status=error.status_code, detail=clean_text(detail), errors=[]
    )
    return render_problem(problem, dict(error.headers or {}))


async def _unexpected(_request: Request, error: Exception) -> Response:
    """A fault of this program. Starlette raises it on after answering, so the server logs the trace."""
    return render_problem(describe(error))
