"""Finds the model that a training goes on from, and refuses one that it cannot go on from."""

from boost_core.config import TrainingConfig
from boost_core.model import Model
from boost_core.warm_start import refuse_other_kind
from service.errors import ModelNotFound, RequestRefused
from service.registry import LoadedModel, ModelRegistry
from service.requests import TrainingRequest
from workers.data_plan import DataPlan

HERE = ("warm_start",)


def find_start(request: TrainingRequest, registry: ModelRegistry) -> LoadedModel | None:
    """The registered model that a request names. Raises RequestRefused or ArtifactGone."""
    named = request.warm_start
    if named is None:
        return None
    if named.model is None or named.file is not None:
        raise RequestRefused([(HERE, "name a registered model under model; files are for the command line only")])
    try:
        return registry.load(named.model, named.version)
    except ModelNotFound as error:
        raise RequestRefused([(HERE, str(error))]) from None


def check_start(model: Model | None, plan: DataPlan, config: TrainingConfig) -> None:
    """Raises ConfigError with every difference that matters."""
    if model is not None:
        refuse_other_kind(model, config, plan.features, plan.classes)
