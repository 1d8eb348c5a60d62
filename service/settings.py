"""Settings of every process of the service: flags of its command, else EDGEWISE_* variables, else defaults."""

import ipaddress
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.errors import StartRefused

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

MIB = 1 << 20
PATHS = (
    "data_root",
    "state_dir",
    "tls_dir",
    "admin_key_file",
    "database_password_file",
    "worker_dir",
    "ready_file",
)
PLACES = ("checkpoint_dir", "model_dir")  # a folder, or a URI of an object store


def default_state_dir() -> Path:
    """Where the XDG base directory specification puts data that must survive restarts."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "edgewise"


class Settings(BaseSettings):
    """Everything that can be set about a process of the service."""

    model_config = SettingsConfigDict(env_prefix="EDGEWISE_", extra="forbid")

    data_root: Path = Field(default=Path(), description="Data paths of requests are relative to this folder.")
    state_dir: Path = Field(
        default_factory=default_state_dir,
        description="Folder of the models, and of the job store where that is SQLite; one server each then.",
    )
    database_url: str = Field(
        default="", description="postgresql://user@host:5432/database; empty = SQLite in the state folder."
    )
    database_password_file: Path | None = Field(
        default=None, description="File of the database's password, where the address holds none."
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on; beyond loopback only with API keys.")
    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = 8000
    processes: Annotated[int, Field(ge=1, le=64, description="Server processes; more than 1 with PostgreSQL only.")] = 1
    embedded_runner: bool = Field(
        default=True, description="Whether the server runs jobs itself; false where `edgewise runner` does."
    )
    require_keys: bool = Field(default=False, description="Ask for API keys also on loopback.")
    admin_key_file: Path | None = Field(
        default=None, description="File of an API key that the server makes valid for everything when it starts."
    )
    cluster: str = Field(
        default="", description="Where jobs train: empty = in this process, local:N, tcp://host:port, tls://host:port."
    )
    tls_dir: Path | None = Field(
        default=None, description="Folder of the certificates of the cluster's members (`edgewise init` makes them)."
    )
    member_host: str = Field(
        default="127.0.0.1", description="Address where scheduler and workers listen; beyond loopback only with TLS."
    )
    scheduler_port: Annotated[int, Field(ge=0, le=65535, description="Port of `edgewise scheduler`.")] = 8786
    worker_threads: Annotated[int, Field(ge=0, description="Threads of a worker; 0 = its CPU limit.")] = 0
    worker_dir: Path | None = Field(default=None, description="Folder of a worker's files; empty = a temporary one.")
    ready_file: Path | None = Field(
        default=None, description="A runner, scheduler or worker touches this file every few seconds while it is well."
    )
    body_limit_bytes: Annotated[int, Field(ge=1, description="Largest body of a prediction request.")] = 32 * MIB
    predict_rows_cap: Annotated[int, Field(ge=1, description="Most rows of one prediction request.")] = 100_000
    model_cache: Annotated[int, Field(ge=1, description="Models kept in memory for prediction.")] = 8
    model_dir: str = Field(
        default="",
        description="Folder of models, or an object store (s3://, gs://, abfss://); empty = in the state folder.",
    )
    checkpoint_dir: str = Field(
        default="",
        description="Folder of checkpoints, the same for all workers, or an object store (s3://, gs://, abfss://); "
        "empty = in the state folder.",
    )
    checkpoint_seconds: Annotated[float, Field(gt=0, description="Time between two checkpoints of a job.")] = 30.0
    deadline_seconds: Annotated[
        float, Field(gt=0, description="A worker that is silent for so long in a round is left out of its gang.")
    ] = 30.0
    # Long beside any pause of a healthy process, short beside a person's patience.
    lease_seconds: Annotated[float, Field(gt=0, description="A silent runner loses its jobs after this.")] = 30.0
    poll_seconds: Annotated[float, Field(gt=0, description="How often a runner looks at the queue.")] = 2.0
    worker_wait_seconds: Annotated[
        float, Field(gt=0, description="A job fails for which there are no workers for so long, busy or not.")
    ] = 600.0
    stop_seconds: Annotated[float, Field(gt=0, description="Time that running jobs get to stop at shutdown.")] = 20.0

    @field_validator("cluster")
    @classmethod
    def _known_cluster(cls, value: str) -> str:
        return checked_cluster(value)

    @property
    def checkpoints(self) -> str:
        """Where checkpoints are kept: a folder, or a URI."""
        return self.checkpoint_dir or str(self.state_dir / "checkpoints")

    @property
    def models(self) -> str:
        """Where the registry keeps models: a folder, or a URI."""
        return self.model_dir or str(self.state_dir / "models")

    @field_validator(*PLACES)
    @classmethod
    def _known_place(cls, value: str) -> str:
        if not value:
            return value
        from workers.object_store import checked_location, is_uri  # with pyarrow, which a scheduler does without

        return checked_location(value) if is_uri(value) else str(Path(value).expanduser().absolute())

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str) -> str:
        if value:
            from service.sql_engine import postgres_url  # with SQLAlchemy, which members of the cluster do without

            postgres_url(value)
        return value

    @field_validator(*PATHS)
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        # Fixed once: a later change of the working folder must not move the data root.
        return None if value is None else value.expanduser().absolute()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.cluster.startswith("tls://") and self.tls_dir is None:
            raise ValueError(f"cluster {self.cluster!r} needs certificates: set tls_dir (`edgewise init` makes them)")
        if not self.database_url:
            if self.processes > 1:
                raise ValueError(f"processes {self.processes}: several need PostgreSQL; set database_url")
            if not self.embedded_runner:
                raise ValueError("embedded_runner false: a runner of its own needs PostgreSQL; set database_url")
        if self.processes > 1 and self.embedded_runner:
            raise ValueError("several processes share one runner: set embedded_runner false, start `edgewise runner`")
        return self

    @property
    def keys_required(self) -> bool:
        """Whether calls need an API key: always, where others can reach the server."""
        return self.require_keys or not is_loopback(self.host)

    def database(self) -> "URL | None":
        """Where the job store is; None = SQLite in the state folder. Raises StartRefused."""
        if not self.database_url:
            return None
        from service.sql_engine import postgres_url

        password = None
        if self.database_password_file is not None:
            password = read_secret(self.database_password_file, "database_password_file")
        return postgres_url(self.database_url, password)


def read_secret(path: Path, name: str) -> str:
    """A secret from a file, without the line's end. Raises StartRefused naming the setting."""
    try:
        secret = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise StartRefused(f"{name}: {path} cannot be read: {reason}") from None
    if not secret:
        raise StartRefused(f"{name}: {path} is empty")
    return secret


def checked_cluster(target: str) -> str:
    """A cluster setting that can be connected to. Raises ValueError naming what is wrong with it."""
    kind, _, rest = target.partition(":")
    if kind == "local" and not (rest.isascii() and rest.isdigit() and int(rest) >= 1):
        raise ValueError(f"cluster {target!r}: local:N needs a number of workers, 1 or more, as in local:2")
    if target and kind not in {"local", "tcp", "tls"}:
        raise ValueError(
            f"cluster {target!r} is not known; leave it empty, or use local:N, tcp://host:port or tls://host:port"
        )
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
