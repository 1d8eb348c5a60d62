"""How processes of the service log."""

QUIET = ("alembic", "distributed")  # libraries whose news are not the service's


def log_config() -> dict[str, object]:
    """Everything to standard error, in one format."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {name: {"level": "WARNING"} for name in QUIET},
    }
