"""Run while the image is built: imports what each role imports, so that Python keeps the bytecode."""

import importlib
import pkgutil

import boost_core
import service
import workers

# Alembic reads migrations by their files.
LEFT_OUT = ("service.migrations",)


def main() -> None:
    """Import every module of the project, with what they import only when they are called."""
    for package in (boost_core, workers, service):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(LEFT_OUT):
                importlib.import_module(module.name)
    for name in (
        "alembic.command",
        "psycopg",
        "pyarrow.dataset",
        "pyarrow.parquet",
        "sqlalchemy.dialects.postgresql.psycopg",
        "sqlalchemy.dialects.sqlite",
        "uvicorn.loops.auto",
        "uvicorn.protocols.http.auto",
        "uvicorn.protocols.websockets.auto",
        "uvicorn.lifespan.on",
    ):
        importlib.import_module(name)


main()
