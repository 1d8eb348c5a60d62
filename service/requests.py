"""The training request: what `POST /v1/jobs` and `edgewise train JOB.json` read, and what it resolves to.

Both callers go through `parse` and `resolve`, so both give the same messages.
"""

import difflib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from boost_core.catalogue import refuse_classes, refuse_missing_validation, resolve_config
from boost_core.class_weights import in_class_order
from boost_core.config import TrainingConfig
from boost_core.label_sets import refuse_label_sets
from boost_core.stopping import MEANINGS
from service.errors import Problem, RequestRefused
from workers.data_plan import DataPlan, DataRequest, plan_data
from workers.data_root import resolve_paths

MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("edgewise", "{message}", {"message": message})


def _check_categorical(value: object) -> object:
    if value != "auto":
        raise _wrong(f'only "auto" is supported yet, got {value!r}')
    return value


def _check_label(value: object) -> object:
    names: list[Any] = value if isinstance(value, list) else [value.get("list") if isinstance(value, dict) else value]
    fits = bool(names) and all(isinstance(name, str) and name for name in names)
    if not fits or (isinstance(value, dict) and set(value) != {"list"}):
        raise _wrong(f'must be a column, a list of columns of 0 and 1, or {{"list": column}}, got {value!r:.100}')
    return _distinct(names) and value


def _check_paths(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise _wrong(f"must be a path or a list of paths, got {value!r:.200}")
    return value


def _check_valid(value: object) -> object:
    if isinstance(value, dict):
        kinds = ", ".join(map(str, value)) or "an empty object"
        raise _wrong(f"validation data by {kinds:.100} are not supported yet; give a path or null")
    return value if value is None else _check_paths(value)


def _check_workers(value: object) -> object:
    number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10_000
    if value != "auto" and not number:
        raise _wrong(f'must be "auto", 0 (in the server\'s own process) or a number of workers, got {value!r:.100}')
    return value


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _distinct(names: list[str] | None) -> list[str] | None:
    if repeated := _repeated(names or []):
        raise _wrong(f"named twice: {', '.join(repeated)}")
    return names


Paths = Annotated[str | list[str], BeforeValidator(_check_paths)]
Columns = Annotated[list[str], AfterValidator(_distinct)]


class _Strict(BaseModel):
    """No guessing: a number in quotes is not a number, and an unknown key is named."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DataSpec(_Strict):
    """Which rows and columns to train on. Paths are relative to the data root."""

    train: Paths = Field(description="A Parquet file, a list of them, a glob or a folder.")
    valid: Annotated[str | list[str] | None, BeforeValidator(_check_valid)] = Field(
        default=None, description="Validation rows, in the same form; null for none."
    )
    label: Annotated[str | list[str] | dict[str, str], BeforeValidator(_check_label)] = Field(
        description='The label\'s column; several labels a row: columns of 0 and 1, or {"list": a column of lists}.'
    )
    features: Annotated[list[str] | None, AfterValidator(_distinct)] = Field(
        default=None,
        min_length=1,
        description="The columns to learn from, in this order; null for all others.",
    )
    exclude: Columns = Field(default=[], description="Columns that are not features.")
    weight: str | None = Field(
        default=None,
        min_length=1,
        description="The column of row weights: a row of weight w counts as w rows, one of weight 0 is left out.",
    )
    categorical: Annotated[Literal["auto"], BeforeValidator(_check_categorical)] = "auto"


class WeakLearnerSpec(_Strict):
    """A weak learner with its parameters (GET /v1/algorithms lists them)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str


class AlgorithmSpec(_Strict):
    """An algorithm with its parameters (GET /v1/algorithms lists them)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    name: str
    weak_learner: WeakLearnerSpec | None = None


class ResourcesSpec(_Strict):
    """Where to train."""

    workers: Annotated[Literal["auto"] | int, BeforeValidator(_check_workers)] = Field(
        default="auto",
        description="A number of Dask workers, 0 for the server's own process, or auto: as few as the rows fit on.",
    )
    threads: int | None = Field(default=None, ge=1, le=1024, description="Threads of each worker; null: all cores.")


class StoppingSpec(_Strict):
    """Early stopping: the run ends when the metric has not improved for some rounds, the model at its best round."""

    metric: Literal["error", "log_loss", "train_error", "strict_train_error", "loss"] = Field(
        default="error", description=f"What must get lower. {MEANINGS}."
    )
    patience: int = Field(default=50, ge=1, le=1_000_000, description="Rounds without improvement.")
    min_delta: float = Field(default=0.0, ge=0.0, le=1e9, description="An improvement is more than this.")


class WarmStartSpec(_Strict):
    """The model that the training goes on from, as if it had not ended."""

    model: str | None = Field(default=None, pattern=MODEL_NAME, description="Its name.")
    version: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Its version; null: the newest.")
    file: str | None = Field(default=None, description="Without a server, a model file in place of name and version.")


class TrainingRequest(_Strict):
    """What to train, on what, and under which name the model is kept."""

    name: str = Field(default="model", pattern=MODEL_NAME, description="The model's name in the registry.")
    data: DataSpec
    algorithm: AlgorithmSpec
    rounds: int = Field(ge=1, le=1_000_000, description="Rounds of boosting.")
    max_bins: int = Field(default=255, ge=2, le=255, description="Value bins of a feature; missing has its own.")
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    stopping: StoppingSpec | None = Field(default=None, description="Early stopping; null: none.")
    calibration: Literal["temperature"] | None = Field(
        default=None,
        description="temperature: one factor for all probabilities, by the log loss of data.valid; null: none.",
    )
    conditions: bool = Field(
        default=False,
        description="Measure every round how the weak learner meets the weak-learning conditions; takes time.",
    )
    profile: bool = Field(
        default=False,
        description="Tell of every round where its time went; of all of them the answer tells it anyway.",
    )
    warm_start: WarmStartSpec | None = Field(
        default=None, description="Go on from a model with the same settings; rounds counts its rounds too."
    )
    priority: int = Field(
        default=0,
        ge=-100,
        le=100,
        description="Which of the jobs that wait starts first: the highest. Waiting raises it by 1 every 5 minutes.",
    )
    resources: ResourcesSpec = ResourcesSpec()


def parse(body: object) -> TrainingRequest:
    """A request from decoded JSON. Raises RequestRefused with every mistake and its place."""
    try:
        request = TrainingRequest.model_validate(body)
    except ValidationError as error:
        raise RequestRefused(problems_in(error, TrainingRequest)) from None
    return request


def problems_in(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """A validation error as (location, message) pairs, in words that name the key and the value."""
    return [(tuple(item["loc"]), _message(item, model)) for item in error.errors(include_url=False)]


def _message(item: ErrorDetails, model: type[BaseModel]) -> str:
    loc, value = item["loc"], item["input"]
    if item["type"] == "missing":
        return "is required"
    if item["type"] == "extra_forbidden":
        known = sorted(_keys_at(model, loc[:-1]))
        close = difflib.get_close_matches(str(loc[-1]), known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"unknown key {loc[-1]!r:.100}; known are: {', '.join(known)}{hint}"
    if item["type"] == "string_pattern_mismatch":
        return f"must match {item['ctx']['pattern']}, got {value!r:.100}"
    if item["type"] == "edgewise" or isinstance(value, (dict, list)):
        return item["msg"]
    return f"{item['msg']}, got {value!r:.100}"


def _keys_at(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    """The keys that the object at a location may have."""
    for key in loc:
        field = model.model_fields.get(str(key))
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return []
        model = field.annotation
    return list(model.model_fields)


def resolve(request: TrainingRequest, data_root: Path) -> tuple[DataRequest, TrainingConfig]:
    """The files and the complete configuration that a request means. Opens no data file.

    Raises ConfigError (unknown algorithm or parameter) or DataError (no such file, outside the data root).
    """
    config = resolve_config(_engine_body(request))
    refuse_missing_validation(config, request.data.valid is not None)
    return _resolve_data(request.data, data_root), config


def prepare(request: TrainingRequest, data_root: Path) -> tuple[DataPlan, TrainingConfig]:
    """What a run needs of a request. Opens the data files and finds whatever can be found before training.

    Raises what `resolve` raises, DataError for what the files hold, and ConfigError for an algorithm that
    cannot learn their classes.
    """
    data, config = resolve(request, data_root)
    plan = plan_data(data)
    refuse_classes(config, len(plan.classes))
    if plan.multi_label:
        refuse_label_sets(config)
    return plan, in_class_order(config, plan.classes)


def _engine_body(request: TrainingRequest) -> dict[str, Any]:
    names = {"algorithm", "rounds", "max_bins", "seed", "stopping", "calibration", "conditions"}
    body = request.model_dump(include=names)
    algorithm = body["algorithm"]
    if algorithm["weak_learner"] is None:
        del algorithm["weak_learner"]
    return body


def _resolve_data(data: DataSpec, data_root: Path) -> DataRequest:
    return DataRequest(
        train=_files("train", data.train, data_root),
        valid=None if data.valid is None else _files("valid", data.valid, data_root),
        label=_label_of(data.label),
        label_lists=isinstance(data.label, dict),
        features=None if data.features is None else tuple(data.features),
        exclude=tuple(data.exclude),
        weight=data.weight,
    )


def _label_of(label: str | list[str] | dict[str, str]) -> str | tuple[str, ...]:
    if isinstance(label, dict):
        return label["list"]
    return label if isinstance(label, str) else tuple(label)


def _files(key: str, paths: str | list[str], data_root: Path) -> tuple[str, ...]:
    loc = ("data", key)
    if not isinstance(paths, str) and (repeated := _repeated(paths)):
        # Somebody who names a file twice may want its rows to count twice, and would not get that.
        raise RequestRefused([(loc, f"names a path more than once: {', '.join(repeated):.300}")])
    try:
        return resolve_paths(data_root, paths, loc)
    except OSError as error:
        raise RequestRefused([(loc, f"{paths!r:.200} cannot be looked up: {error.strerror}")]) from None
