"""The OpenAPI description: FastAPI's, with the bodies that endpoints decode by themselves."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from service.api.predict import PredictRequest
from service.problem_details import ProblemDetails
from service.requests import TrainingRequest

REFERENCE = "#/components/schemas/{model}"


def describe_api(app: FastAPI) -> dict[str, Any]:
    """The description of all routes; made once."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schema["components"]["schemas"] |= _own_schemas()
        app.openapi_schema = schema
    return app.openapi_schema


def _own_schemas() -> dict[str, Any]:
    bodies = [(model, "validation") for model in (TrainingRequest, PredictRequest, ProblemDetails)]
    _references, definitions = models_json_schema(bodies, ref_template=REFERENCE)  # type: ignore[arg-type]
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas
