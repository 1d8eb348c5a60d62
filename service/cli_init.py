"""`edgewise init`: the secrets of a new cluster."""

import secrets
from pathlib import Path

from service.cli_output import reporting
from service.errors import StartRefused

ADMIN_KEY, DATABASE_PASSWORD, TLS = "admin-key", "database/password", "tls"


def run(folder: Path, *, as_json: bool) -> None:
    """Make what is missing: again is harmless. What is there is never replaced."""
    with reporting(as_json) as output:
        made = make_secrets(folder)
        names = ", ".join(made) or "nothing new"
        output.answer({"folder": str(folder), "made": made}, f"{folder}: {names}")


def make_secrets(folder: Path) -> list[str]:
    """Certificates, the database's password and the first API key; what of them was made. Raises StartRefused."""
    from service.certificates import make_certificates, write_secret
    from service.keys import new_text

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = [TLS] if make_certificates(folder / TLS) else []
        (folder / DATABASE_PASSWORD).parent.mkdir(mode=0o755, exist_ok=True)
        # The database runs as a user of its own and must read its password: who may is said by the folders above.
        for name, text, mode in (
            (DATABASE_PASSWORD, secrets.token_urlsafe(32), 0o644),
            (ADMIN_KEY, new_text(), 0o600),
        ):
            if not (folder / name).exists():
                write_secret(folder / name, f"{text}\n".encode(), mode)
                made.append(name)
    except OSError as error:
        raise StartRefused(f"secrets folder {folder}: {error.strerror}; choose another one") from None
    return made
