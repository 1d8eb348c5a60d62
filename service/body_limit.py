"""Refuses bodies that are too large: by their Content-Length, and while they arrive."""

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import BodyTooLarge
from service.problem_details import MEDIA_TYPE, describe
from service.safe_json import encode

# Every body but a prediction's is a small JSON object.
SMALL_BODY_BYTES = 1 << 20
LARGE_BODY_PATHS = ("/predict",)
# How much of a refused body is read and dropped, and for how long.
LINGER_BYTES = 256 << 20
LINGER_SECONDS = 10.0


class BodyLimit:
    """ASGI middleware. `large` is the limit of the paths that take tables, in bytes."""

    def __init__(self, app: ASGIApp, large: int) -> None:
        self._app = app
        self._large = large

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._large if scope["path"].endswith(LARGE_BODY_PATHS) else min(SMALL_BODY_BYTES, self._large)
        if _declared_length(scope) > limit:
            await _refuse(limit, receive, send)
            return
        await self._count(limit, scope, receive, send)

    async def _count(self, limit: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request, but cut it off when more bytes arrive than are allowed."""
        seen = 0
        started = False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise _CutOff
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except _CutOff:
            if started:
                raise
            await _refuse(limit, receive, send)


class _CutOff(BaseException):
    """Passes through handlers of Exception: no layer below may answer for a body that was cut off."""


def _declared_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0


async def _refuse(limit: int, receive: Receive, send: Send) -> None:
    """Answer 413, then discard what the client still sends.

    Most clients read only after they have sent everything: a closed connection would be all they see.
    """
    problem = describe(BodyTooLarge(f"the body has more than {limit} bytes; send less at a time"))
    content = encode(problem.content())
    headers = {"content-type": MEDIA_TYPE, "content-length": str(len(content)), "connection": "close"}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": content, "more_body": True})
    with anyio.move_on_after(LINGER_SECONDS):
        await _discard(receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _discard(receive: Receive) -> None:
    seen = 0
    while seen < LINGER_BYTES:
        message = await receive()
        seen += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return
