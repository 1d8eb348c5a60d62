"""`edgewise keys`: make, list and revoke API keys in the store that the settings name."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from service.keys import ApiKey, KeyStore

keys = typer.Typer(help="API keys: make, list, revoke.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on standard output.")]


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    scope: Annotated[list[str], typer.Option(help="read, predict, train or admin; may be given several times.")],
    json: Json = False,
) -> None:
    """Make a key. Its text is shown once: the store keeps only a hash."""
    from service.cli_output import reporting
    from service.keys import key_of, new_text, parse_scopes

    with reporting(json) as output, _store() as store:
        text = new_text()
        key = key_of(text, name[:100], parse_scopes(scope), datetime.now(UTC))
        store.add_key(key)
        output.answer({"key": text, **_described(key)}, text)


@keys.command("list")
def list_keys(json: Json = False) -> None:
    """List the keys, revoked ones included."""
    from service.cli_output import reporting

    with reporting(json) as output, _store() as store:
        found = store.list_keys()
        output.answer({"keys": [_described(key) for key in found]}, _table(found))


@keys.command()
def revoke(key: Annotated[str, typer.Argument(help="The key's id, as `list` shows it.")], json: Json = False) -> None:
    """Put a key out of force for ever; servers notice within seconds."""
    from service.cli_output import reporting

    with reporting(json) as output, _store() as store:
        revoked = store.revoke_key(key)
        output.answer(_described(revoked), f"{revoked.id} ({revoked.name}) is revoked")


@contextlib.contextmanager
def _store() -> Iterator[KeyStore]:
    """The keys of the store that the settings name, also while a server runs on it."""
    from service.app import open_database
    from service.settings import load_settings
    from service.sql_keys import SqlKeys
    from service.state_dir import StateDirectory

    settings = load_settings()
    engine = open_database(settings, StateDirectory.share(settings.state_dir, "command line"))
    try:
        yield SqlKeys(engine)
    finally:
        engine.dispose()


def _described(key: ApiKey) -> dict[str, Any]:
    revoked = None if key.revoked_at is None else key.revoked_at.isoformat()
    described = {"id": key.id, "name": key.name, "scopes": sorted(key.scopes)}
    return described | {"created_at": key.created_at.isoformat(), "revoked_at": revoked}


def _table(found: Sequence[ApiKey]) -> str:
    lines = [
        f"{key.id}  {'revoked' if key.revoked_at else 'in force'}  {','.join(sorted(key.scopes))}  {key.name}"
        for key in found
    ]
    return "\n".join(lines) or "no keys"
