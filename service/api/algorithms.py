"""What can be asked of a training request."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from boost_core.catalogue import describe_algorithms

router = APIRouter(prefix="/v1/algorithms", tags=["algorithms"])


class AlgorithmsAnswer(BaseModel):
    """Every algorithm: the JSON schema of its parameters, its weak learners, its source and its guarantee."""

    algorithms: list[dict[str, Any]]


@router.get("")
def list_algorithms() -> AlgorithmsAnswer:
    """The algorithms of this server."""
    return AlgorithmsAnswer(algorithms=describe_algorithms())
