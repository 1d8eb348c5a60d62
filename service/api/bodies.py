"""Request bodies: read on the event loop, decoded in the endpoint's own thread.

FastAPI would decode and validate them on the event loop, where a large one would hold up every other request.
"""

from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import BaseModel

from service.errors import UnsupportedMedia
from service.safe_json import decode

JSON_TYPE = "application/json"


class Body:
    """The bytes of a request's body, still undecoded."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def json(self) -> Any:
        """The decoded body. Raises MalformedBody. Takes long for a large body: not for the event loop."""
        return decode(self._data)


async def _read_json_body(request: Request) -> Body:
    given = request.headers.get("content-type", "")
    media = given.partition(";")[0].strip().lower()
    if media != JSON_TYPE and not (media.startswith("application/") and media.endswith("+json")):
        raise UnsupportedMedia(f"Content-Type must be {JSON_TYPE}, got {given!r:.100}")
    return Body(await request.body())


JsonBody = Annotated[Body, Depends(_read_json_body)]


def described_by(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of a body that the endpoint decodes by itself (see openapi.describe_api)."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {JSON_TYPE: {"schema": schema}}}}
