"""Bodies over the limit are refused by their header and while they arrive, and the connection stays sane."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from service.body_limit import SMALL_BODY_BYTES, BodyLimit
from service.settings import Settings
from tests.service.live_server import in_thread
from tests.service.test_api_bad_input import checked_problem

LIMIT = 2 * SMALL_BODY_BYTES
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def limited(data_root: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    state = tmp_path_factory.mktemp("limit") / "state"
    with in_thread(Settings(state_dir=state, body_limit_bytes=LIMIT)) as (client, _app):
        yield client


def in_pieces(n_bytes: int) -> Iterator[bytes]:
    """A body without a Content-Length."""
    for start in range(0, n_bytes, 1 << 16):
        yield b" " * min(1 << 16, n_bytes - start)


@pytest.mark.parametrize(("path", "limit"), [("/v1/jobs", SMALL_BODY_BYTES), ("/v1/models/x/predict", LIMIT)])
def test_the_limit_of_each_path(limited: httpx.Client, path: str, limit: int) -> None:
    for content in (b" " * limit, in_pieces(limit)):
        assert limited.post(path, content=content, headers=JSON).status_code in {400, 404}
    for content in (b" " * (limit + 1), in_pieces(limit + 1), b" " * (20 * limit), in_pieces(20 * limit)):
        answer = limited.post(path, content=content, headers=JSON)
        assert answer.status_code == 413
        assert str(limit) in checked_problem(answer)["detail"]
    assert limited.get("/healthz").status_code == 200


class Exchange:
    """One request to the middleware over an application that reads everything."""

    def __init__(self, headers: list[tuple[bytes, bytes]], pieces: list[bytes]) -> None:
        self.scope: Scope = {"type": "http", "path": "/v1/jobs", "headers": headers}
        self.pieces = pieces
        self.read_by_app = 0
        self.sent: list[Message] = []

    async def app(self, _scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive())["more_body"]:
            self.read_by_app += len(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive(self) -> Message:
        piece = self.pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces)}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    def status(self) -> int:
        asyncio.run(BodyLimit(self.app, 1000)(self.scope, self.receive, self.send))
        starts = [message for message in self.sent if message["type"] == "http.response.start"]
        assert len(starts) == 1
        return int(starts[0]["status"])


def test_a_declared_length_is_refused_before_the_application_runs() -> None:
    exchange = Exchange([(b"content-length", b"1001")], [b"x" * 1001])
    assert (exchange.status(), exchange.read_by_app) == (413, 0)


def test_an_undeclared_length_is_cut_off_at_the_limit() -> None:
    exchange = Exchange([], [b"x" * 400] * 10)
    assert (exchange.status(), exchange.read_by_app) == (413, 800)
    # What was still coming was taken off the wire.
    assert exchange.pieces == []


def test_a_lying_length_is_cut_off() -> None:
    exchange = Exchange([(b"content-length", b"10")], [b"x" * 600] * 3)
    assert exchange.status() == 413


def test_a_body_within_the_limit_passes() -> None:
    exchange = Exchange([(b"content-length", b"1000")], [b"x" * 500, b"x" * 500])
    assert exchange.status() == 200
