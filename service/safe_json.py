"""JSON in and out, safe in both directions.

In: the numbers that JSON lacks (NaN, Infinity) are read, because clients send them; endless nesting and lone
surrogates, which no encoder could give back, are refused. Out: what JSON cannot say becomes null, so that an
answer is always valid JSON.
"""

from typing import Any

from pydantic_core import from_json, to_json

from service.errors import MalformedBody


def decode(data: bytes) -> Any:
    """The value of a JSON text. Raises MalformedBody with the position of the first mistake."""
    try:
        return from_json(data, allow_inf_nan=True, cache_strings="keys")
    except (ValueError, RecursionError) as error:
        raise MalformedBody(f"not valid JSON: {clean_text(str(error))}") from None


def encode(value: Any) -> bytes:
    """UTF-8 JSON of a value; NaN and the infinities become null."""
    return to_json(value, inf_nan_mode="null")


def clean_text(text: str) -> str:
    """The text with lone surrogates (from broken file names) as escapes, so that it can be encoded."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
