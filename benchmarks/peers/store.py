"""Results of runs, kept outside the project: a JSON file a set, peer and version. One that was made under other
conditions (settings, data, threads, processor) is none."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boost_core
import workers
from benchmarks.machine import describe_machine, processor_name
from benchmarks.peers.methods import PEERS
from benchmarks.peers.settings import SETTINGS
from benchmarks.peers.single import EDGEWISE


def default_cache() -> Path:
    """In the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edgewise" / "peers"


@dataclass(frozen=True)
class Conditions:
    """What a result depends on."""

    set_: str
    peer: str
    version: str
    settings: str
    data: str
    threads: int
    processor: str

    @property
    def file_name(self) -> str:
        return f"{self.set_}.{self.peer}.{self.version}.json"


def conditions_of(name: str, peer: str, digest: str, threads: int) -> Conditions | None:
    """None where the peer is not installed. Edgewise's version is its sources', so that a change is measured anew."""
    version = sources_version() if peer == EDGEWISE else PEERS[peer].version
    settings = str(SETTINGS[name]) if peer == EDGEWISE else PEERS[peer].settings
    if version is None:
        return None
    return Conditions(name, peer, version, settings, digest, threads, processor_name())


def sources_version() -> str:
    """Names the engine that is measured."""
    digest = hashlib.sha256()
    for package in (boost_core, workers):
        for file in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def recall(cache: Path, conditions: Conditions) -> dict[str, Any] | None:
    """The result of a run under these conditions, None if there is none."""
    path = cache / conditions.file_name
    if not path.exists():
        return None
    kept: dict[str, Any] = json.loads(path.read_text())
    return kept if kept["conditions"] == vars(conditions) else None


def keep(cache: Path, conditions: Conditions, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result with its conditions and machine; returns what was written."""
    cache.mkdir(parents=True, exist_ok=True)
    kept = {**result, "conditions": vars(conditions), "machine": describe_machine()}
    path = cache / conditions.file_name
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(json.dumps(kept))
    partial.replace(path)
    return kept
