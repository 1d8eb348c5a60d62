"""Registered models and their versions."""

from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from service.api.services import Needs
from service.store import Version

router = APIRouter(prefix="/v1/models", tags=["models"])
VersionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]


class VersionAnswer(BaseModel):
    """One version of a model."""

    name: str
    version: int
    sha256: str = Field(description="Of the model's content; equal for equal models.")
    job_id: str
    created_at: datetime
    metadata: dict[str, Any] = Field(description="Configuration, features, classes, fingerprint of the data.")

    @classmethod
    def of(cls, version: Version) -> Self:
        """The answer about a stored version."""
        return cls(
            name=version.name,
            version=version.version,
            sha256=version.sha256,
            job_id=version.job_id,
            created_at=version.created_at,
            metadata=version.description,
        )


class ModelsAnswer(BaseModel):
    """Every model with its newest version."""

    models: list[VersionAnswer]


class ModelAnswer(BaseModel):
    """A model with all its versions, the newest first."""

    name: str
    versions: list[VersionAnswer]


@router.get("")
def list_models(services: Needs) -> ModelsAnswer:
    """Registered models, by name."""
    return ModelsAnswer(models=[VersionAnswer.of(version) for version in services.store.list_models()])


@router.get("/{name}")
def read_model(name: str, services: Needs) -> ModelAnswer:
    """One model with its versions."""
    return ModelAnswer(name=name, versions=[VersionAnswer.of(item) for item in services.store.versions(name)])


@router.get("/{name}/versions/{version}")
def read_version(name: str, version: VersionNumber, services: Needs) -> VersionAnswer:
    """One version of a model."""
    return VersionAnswer.of(services.store.version(name, version))
