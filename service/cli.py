"""The command line. A command's own imports happen when it runs, so that --help answers at once."""

import gc
import sys
from pathlib import Path
from typing import Annotated

import typer

from service.cli_keys import keys

USAGE_ERROR = 2
# Allocations between two searches for cycles. With Python's own 700 a server spends a sixth of its start on searching
# what imports have just made, none of which is garbage.
SEARCH_EVERY = 20_000

app = typer.Typer(
    name="edgewise",
    help="Multiclass boosting: train, predict, serve.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

app.add_typer(keys, name="keys")


def _tell_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"edgewise {version('edgewise')}")
        raise typer.Exit


@app.callback()
def edgewise(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Multiclass boosting: train, predict, serve."""


Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on standard output.")]
DataRoot = Annotated[Path, typer.Option(help="Data paths are relative to this folder and may not leave it.")]


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; beyond loopback only with API keys.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    data_root: Annotated[Path | None, typer.Option(help="Data paths of requests are relative to this.")] = None,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the job store and the models.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="local:N, tcp://host:port or tls://host:port; empty trains here.")
    ] = None,
    json: Json = False,
) -> None:
    """Run the HTTP server. Every flag can also be set as EDGEWISE_HOST, EDGEWISE_PORT and so on."""
    from service import cli_serve

    flags = {"host": host, "port": port, "data_root": data_root, "state_dir": state_dir, "cluster": cluster}
    cli_serve.run(flags, as_json=json)


@app.command()
def runner(
    data_root: Annotated[Path | None, typer.Option(help="Data paths of requests are relative to this.")] = None,
    state_dir: Annotated[Path | None, typer.Option(help="Folder of the models, shared with the servers.")] = None,
    cluster: Annotated[str | None, typer.Option(help="tcp://host:port or tls://host:port; empty trains here.")] = None,
) -> None:
    """Run jobs of a store that servers share (EDGEWISE_DATABASE_URL)."""
    from service import cli_roles

    cli_roles.run_runner({"data_root": data_root, "state_dir": state_dir, "cluster": cluster})


@app.command()
def scheduler(
    member_host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    scheduler_port: Annotated[int | None, typer.Option("--port", help="Port to listen on.")] = None,
    tls_dir: Annotated[Path | None, typer.Option(help="Folder of the members' certificates.")] = None,
) -> None:
    """Run the scheduler of a cluster."""
    from service import cli_roles

    cli_roles.run_scheduler({"member_host": member_host, "scheduler_port": scheduler_port, "tls_dir": tls_dir})


@app.command()
def worker(
    cluster: Annotated[str | None, typer.Argument(help="The scheduler's address.")] = None,
    member_host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    worker_threads: Annotated[int | None, typer.Option("--threads", help="0 = the container's CPU limit.")] = None,
    tls_dir: Annotated[Path | None, typer.Option(help="Folder of the members' certificates.")] = None,
) -> None:
    """Run a worker of a cluster."""
    from service import cli_roles

    flags = {"cluster": cluster, "member_host": member_host, "worker_threads": worker_threads, "tls_dir": tls_dir}
    cli_roles.run_worker(flags)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to keep them; what is there stays.")], json: Json = False
) -> None:
    """Make the secrets of a new cluster: members' certificates, the database's password, the first API key."""
    from service import cli_init

    cli_init.run(folder, as_json=json)


@app.command()
def compile(
    classes: Annotated[list[int] | None, typer.Option(min=2, help="For so many classes; may be repeated.")] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(help="For NAME or NAME:WEAK_LEARNER; may be repeated; else adaboost_mh."),
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for them, in place of NUMBA_CACHE_DIR.")] = None,
    json: Json = False,
) -> None:
    """Compile the kernels of jobs with the defaults into NUMBA_CACHE_DIR, so that the first job need not."""
    from service import cli_compile

    cli_compile.run(cli_compile.Wanted(classes, algorithm, cache), as_json=json)


@app.command()
def train(  # noqa: PLR0913, PLR0917 - a parameter is a flag here
    job: Annotated[Path, typer.Argument(help="The training request: a JSON file, as for POST /v1/jobs.")],
    out: Annotated[Path, typer.Option(help="Where to write the model.")],
    workers: Annotated[int | None, typer.Option(min=0, help="0 trains here, N on N local workers.")] = None,
    cluster: Annotated[str | None, typer.Option(help="A scheduler's address, tcp://host:port.")] = None,
    data_root: DataRoot = Path(),
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint of this OUT.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Show where the time went, by stage.")] = False,
    json: Json = False,
) -> None:
    """Train a model without a server."""
    from service import cli_train

    cli_train.run(cli_train.Arguments(job, out, workers, cluster, data_root, resume, profile), as_json=json)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    data: Annotated[str, typer.Argument(help="Parquet data, under the data root.")],
    out: Annotated[Path | None, typer.Option(help="Write predictions here (.parquet or .csv).")] = None,
    label: Annotated[str | None, typer.Option(help="The column to compare with, if not the model's label.")] = None,
    data_root: DataRoot = Path(),
    json: Json = False,
) -> None:
    """Predict with a model file; reports the error if the label is among the columns."""
    from service import cli_predict

    cli_predict.run(cli_predict.Arguments(model, data, out, label, data_root), as_json=json)


@app.command()
def show(model: Annotated[Path, typer.Argument(help="A model file.")], json: Json = False) -> None:
    """Show what a model file holds: its configuration, its data and the figures of its rounds."""
    from service import cli_show

    cli_show.run(model, as_json=json)


@app.command()
def algorithms(json: Json = False) -> None:
    """List the algorithms with their weak learners and parameters."""
    from service import cli_algorithms

    cli_algorithms.run(as_json=json)


def main(arguments: list[str] | None = None) -> None:
    """The console script. Exit codes: 0 done, 2 request wrong, 3 data refused, 4 failed, 130 interrupted."""
    gc.set_threshold(SEARCH_EVERY)
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(given, standalone_mode=False)
    except typer.exceptions.TyperException as error:
        code = _usage_error(error.format_message(), as_json="--json" in given)
    sys.exit(code or 0)


def _usage_error(message: str, as_json: bool) -> int:
    """A command line that cannot be read."""
    from service.cli_output import print_error
    from service.errors import RequestRefused

    if not message:
        # Called without a command: the help has been shown.
        return USAGE_ERROR
    return print_error(RequestRefused([(("command line",), f"{message} See --help.")]), as_json)


if __name__ == "__main__":
    main()
