"""The model registry: names and versions from the store, files from the artifacts, models in memory."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from boost_core.errors import BoostError
from boost_core.model import Model
from service.artifacts import ArtifactStore
from service.errors import ArtifactGone
from service.store import Version, VersionStore
from workers.errors import WorkersError
from workers.model_file import from_bytes, model_sha256


@dataclass(frozen=True)
class LoadedModel:
    """A registered model in memory."""

    version: Version
    model: Model


class ModelRegistry:
    """Loads registered models and keeps the ones used last. Safe to use from several threads."""

    def __init__(self, versions: VersionStore, artifacts: ArtifactStore, cache_size: int) -> None:
        self._versions = versions
        self._artifacts = artifacts
        self._cache_size = cache_size
        self._loaded: OrderedDict[tuple[str, int], LoadedModel] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, name: str, number: int | None) -> LoadedModel:
        """A version (None = the newest) with its model. Raises ModelNotFound or ArtifactGone."""
        # A version never changes: one that is in memory needs no look into the store.
        if number is not None and (found := self._kept((name, number))):
            return found
        version = self._versions.version(name, number)
        key = (version.name, version.version)
        if found := self._kept(key):
            return found
        # Read outside the lock: predictions with loaded models go on meanwhile, and two readers do no harm.
        loaded = LoadedModel(version, self._read(version))
        with self._lock:
            self._loaded[key] = loaded
            while len(self._loaded) > self._cache_size:
                self._loaded.popitem(last=False)
        return loaded

    def _kept(self, key: tuple[str, int]) -> LoadedModel | None:
        with self._lock:
            if found := self._loaded.get(key):
                self._loaded.move_to_end(key)
            return found

    def _read(self, version: Version) -> Model:
        which = f"model {version.name} version {version.version}"
        try:
            model = from_bytes(self._artifacts.get(version.artifact), which)
        except (WorkersError, BoostError) as error:
            raise ArtifactGone(f"the file of {which} cannot be read: {error}") from error
        if (found := model_sha256(model)) != version.sha256:
            raise ArtifactGone(f"the file of {which} holds sha256 {found}, registered was {version.sha256}")
        return model
