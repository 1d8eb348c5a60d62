"""Lets calls pass that have the API key they need. Where no keys are required, a key that is sent must be right."""

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.rendering import render_problem
from service.errors import KeyUnknown, ScopeMissing, StoreUnavailable
from service.key_ring import KeyRing
from service.keys import scope_needed
from service.problem_details import describe

SCHEME = "bearer"
HOW = "send it as `Authorization: Bearer ew_...`"


class KeyCheck:
    """ASGI middleware, before everything that reads a body. Every path is checked, also one that does not exist."""

    def __init__(self, app: ASGIApp, required: bool) -> None:
        self._app = app
        self._required = required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await self._check(Request(scope))
            except (KeyUnknown, ScopeMissing, StoreUnavailable) as error:
                headers = {"www-authenticate": 'Bearer realm="edgewise"'} if isinstance(error, KeyUnknown) else None
                await render_problem(describe(error), headers)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _check(self, request: Request) -> None:
        # The path that routing goes by, not one that is put together from the request's headers.
        needed = scope_needed(request.method, request.scope["path"])
        if needed is None:
            return
        text = sent_key(request.headers)
        if text is None:
            if self._required:
                raise KeyUnknown(f"this call needs an API key with scope {needed}; {HOW}")
            return
        keys: KeyRing = request.app.state.services.keys
        await run_in_threadpool(keys.check, text, needed)


def sent_key(headers: Headers) -> str | None:
    """The key of a call, None if it has none. Raises KeyUnknown for credentials of another kind."""
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, text = given.partition(" ")
    if scheme.lower() != SCHEME:
        raise KeyUnknown(f"the call has credentials of another kind than an API key; {HOW}")
    return text.strip()
