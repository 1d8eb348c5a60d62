"""Settings of the service: flags of `edgewise serve`, else EDGEWISE_* variables, else defaults."""

import ipaddress
import os
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.errors import StartRefused

MIB = 1 << 20


def default_state_dir() -> Path:
    """Where the XDG base directory specification puts data that must survive restarts."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "edgewise"


class Settings(BaseSettings):
    """Everything that can be set about a server."""

    model_config = SettingsConfigDict(env_prefix="EDGEWISE_", extra="forbid")

    data_root: Path = Field(default=Path(), description="Data paths of requests are relative to this folder.")
    state_dir: Path = Field(
        default_factory=default_state_dir,
        description="Folder of the job store and the models; one server each.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on; only loopback for now.")
    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = 8000
    cluster: str = Field(
        default="", description="Where jobs train: empty = in this process, local:N, or tcp://host:port."
    )
    body_limit_bytes: Annotated[int, Field(ge=1, description="Largest body of a prediction request.")] = 32 * MIB
    predict_rows_cap: Annotated[int, Field(ge=1, description="Most rows of one prediction request.")] = 100_000
    model_cache: Annotated[int, Field(ge=1, description="Models kept in memory for prediction.")] = 8
    checkpoint_dir: Path | None = Field(
        default=None, description="Folder of checkpoints, the same for all workers; empty = in the state folder."
    )
    checkpoint_seconds: Annotated[float, Field(gt=0, description="Time between two checkpoints of a job.")] = 30.0
    deadline_seconds: Annotated[
        float, Field(gt=0, description="A worker that is silent for so long in a round is left out of its gang.")
    ] = 30.0
    # Long beside any pause of a healthy process, short beside a person's patience.
    lease_seconds: Annotated[float, Field(gt=0, description="A silent runner loses its job after this.")] = 30.0
    poll_seconds: Annotated[float, Field(gt=0, description="How often an idle runner looks at the queue.")] = 2.0
    stop_seconds: Annotated[float, Field(gt=0, description="Time a running job gets to stop at shutdown.")] = 20.0

    @field_validator("cluster")
    @classmethod
    def _known_cluster(cls, value: str) -> str:
        return checked_cluster(value)

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.checkpoint_dir or self.state_dir / "checkpoints"

    @field_validator("data_root", "state_dir", "checkpoint_dir")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        # Fixed once: a later change of the working folder must not move the data root.
        return value.expanduser().absolute()

    @model_validator(mode="after")
    def _loopback_only(self) -> Self:
        if not is_loopback(self.host):
            raise ValueError(
                f"host {self.host!r} is not a loopback address; a server that others can reach needs API keys, "
                "which are not supported yet: bind 127.0.0.1 and put a proxy that checks keys in front"
            )
        return self


def checked_cluster(target: str) -> str:
    """A cluster setting that can be connected to. Raises ValueError naming what is wrong with it."""
    kind, _, rest = target.partition(":")
    if kind == "tls":
        raise ValueError(f"cluster {target!r}: TLS schedulers are not supported yet; use tcp://host:port")
    if kind == "local" and not (rest.isascii() and rest.isdigit() and int(rest) >= 1):
        raise ValueError(f"cluster {target!r}: local:N needs a number of workers, 1 or more, as in local:2")
    if target and kind not in {"local", "tcp"}:
        raise ValueError(f"cluster {target!r} is not known; leave it empty, or use local:N or tcp://host:port")
    return target


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def load_settings(**flags: object) -> Settings:
    """Settings with the given flags (None = not given). Raises StartRefused naming what is wrong."""
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, item['loc'])) or 'settings'}: {item['msg']}" for item in error.errors()]
        raise StartRefused("; ".join(line.replace("Value error, ", "") for line in lines)) from None
