"""Prediction with registered models, JSON in and out."""

import time
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Response
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from boost_core.model import SCORE_UNITS, Model
from boost_core.prediction import predict, predict_sets, probabilities, scores
from service.api.bodies import JsonBody, described_by
from service.api.models import VersionNumber
from service.api.rendering import SafeJson
from service.api.services import Needs, Services
from service.errors import RequestRefused
from service.prediction_table import matrix_of_columns, matrix_of_rows
from service.registry import LoadedModel
from service.requests import problems_in
from service.store import Version

router = APIRouter(prefix="/v1/models", tags=["predict"])
Output = Literal["labels", "scores", "probabilities"]


class PredictRequest(BaseModel):
    """Rows to predict: `rows` or `columns`. Null and NaN are missing values; extra columns are ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rows: list[Any] | None = Field(
        default=None,
        description="Each row a list in the order of the model's features, or an object by feature name.",
    )
    columns: dict[str, Any] | None = Field(default=None, description="A list of values for every feature.")
    output: list[Output] = Field(default=["labels"], min_length=1, description="What to answer.")


class PredictedWith(BaseModel):
    """The model that predicted."""

    name: str
    version: int
    sha256: str


class PredictAnswer(BaseModel):
    """Predictions, in the order of the rows."""

    model: PredictedWith
    rows: int
    classes: list[Any] = Field(description="The model's classes, in the order of the scores.")
    labels: list[Any] | None = Field(
        default=None, description="Labels as they were in the training data; lists for several a row."
    )
    scores: list[list[float]] | None = Field(
        default=None,
        description="One score a class, or a column of the code; a single one decides between two by its sign.",
    )
    probabilities: list[list[float]] | None = Field(
        default=None,
        description="One probability a class, in the order of the classes; the label's is the largest. With several "
        "labels a row each has its own, above one half where it is predicted.",
    )
    seconds: float


@router.post("/{name}/predict", openapi_extra=described_by(PredictRequest), response_model=PredictAnswer)
def predict_newest(name: str, body: JsonBody, services: Needs) -> Response:
    """Predict with the newest version of a model."""
    return _answer(services.registry.load(name, None), body, services)


@router.post(
    "/{name}/versions/{version}/predict",
    openapi_extra=described_by(PredictRequest),
    response_model=PredictAnswer,
)
def predict_version(name: str, version: VersionNumber, body: JsonBody, services: Needs) -> Response:
    """Predict with one version of a model."""
    return _answer(services.registry.load(name, version), body, services)


def _answer(loaded: LoadedModel, body: JsonBody, services: Services) -> Response:
    began = time.perf_counter()
    request = _parse(body.json())
    matrix = _matrix(request, loaded.model, services.settings.predict_rows_cap)
    answer = {
        "model": _model_answer(loaded.version),
        "rows": matrix.shape[0],
        "classes": list(loaded.model.classes),
        **_predictions(loaded.model, matrix, request.output),
    }
    # Not through the response model: it would check every value again, in Python, on the event loop.
    return SafeJson(answer | {"seconds": time.perf_counter() - began})


def _model_answer(version: Version) -> dict[str, Any]:
    return {"name": version.name, "version": version.version, "sha256": version.sha256}


def _parse(body: Any) -> PredictRequest:
    try:
        request = PredictRequest.model_validate(body)
    except ValidationError as error:
        raise RequestRefused(problems_in(error, PredictRequest)) from None
    if (request.rows is None) == (request.columns is None):
        raise RequestRefused([(("rows",), 'give either "rows" or "columns"')])
    return request


def _matrix(request: PredictRequest, model: Model, cap: int) -> NDArray[np.float64]:
    features = [feature.name for feature in model.features]
    if request.rows is not None:
        return matrix_of_rows(request.rows, features, cap)
    return matrix_of_columns(request.columns or {}, features, cap)


def _predictions(model: Model, matrix: NDArray[np.float64], output: list[Output]) -> dict[str, Any]:
    # One thread: the server has one for each request already.
    answer: dict[str, Any] = {}
    if "labels" in output and model.multi_label:
        found = predict_sets(model, matrix, 1)
        answer["labels"] = [[model.classes[place] for place in np.flatnonzero(row)] for row in found]
    elif "labels" in output:
        answer["labels"] = [model.classes[index] for index in predict(model, matrix, 1).tolist()]
    if "scores" in output:
        answer["scores"] = (scores(model, matrix, 1) / 2.0**SCORE_UNITS).tolist()
    if "probabilities" in output:
        answer["probabilities"] = probabilities(model, matrix, 1).tolist()
    return answer
