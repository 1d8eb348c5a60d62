"""Serves the pages: one shell for all of them, whose script shows what belongs to the address.

Nothing here depends on a job or on who asks, so no key is needed; what the script shows it fetches from /v1.
"""

import os
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).parent / "static"
ASSETS = "/assets"
# Scripts and styles come from this server and nowhere else, none stands in a page, and no text ever becomes markup:
# a browser that knows trusted types refuses it. Keys cannot leave to other addresses, and no page can frame ours.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    # Asked for again each time, answered by 304: after an upgrade nobody has half of the old pages.
    "cache-control": "no-cache",
}

router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=["GET", "HEAD"])
@router.api_route("/jobs/{job_id}", methods=["GET", "HEAD"])
@router.api_route("/models", methods=["GET", "HEAD"])
@router.api_route("/models/{name}/versions/{version}", methods=["GET", "HEAD"])
async def page() -> Response:
    """The shell of every page."""
    return FileResponse(STATIC / "page.html", headers=HEADERS)


class Assets(StaticFiles):
    """Scripts and styles, with the pages' headers."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(HEADERS)
        return response
