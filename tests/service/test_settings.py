"""Settings: defaults, environment, flags, and refusals by name."""

from pathlib import Path

import pytest

from service.errors import StartRefused
from service.settings import is_loopback, load_settings


def test_defaults_keep_to_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    settings = load_settings()
    assert (settings.host, settings.port, settings.cluster) == ("127.0.0.1", 8000, "")
    assert settings.data_root == Path.cwd()
    assert settings.state_dir == tmp_path / "edgewise"


def test_flags_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWISE_PORT", "9000")
    assert load_settings(port=None).port == 9000
    assert load_settings(port=9001).port == 9001


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_a_host_that_others_reach_needs_keys(host: str) -> None:
    assert load_settings(host=host).keys_required
    assert not load_settings().keys_required
    assert load_settings(require_keys=True).keys_required


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"processes": 2}, "PostgreSQL"),
        ({"embedded_runner": False}, "PostgreSQL"),
        ({"processes": 2, "database_url": "postgresql://a@b/c"}, "edgewise runner"),
        ({"database_url": "mysql://a:hidden@b/c"}, "only postgresql"),
        ({"database_url": "hidden"}, "postgresql://user@host"),
        ({"cluster": "tls://a:1"}, "edgewise init"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(values: dict[str, object], word: str) -> None:
    with pytest.raises(StartRefused, match=word) as error:
        load_settings(**values)
    assert "hidden" not in str(error.value)


def test_the_database_takes_its_password_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    settings = load_settings(database_url="postgresql://me@there:5433/jobs", database_password_file=file)
    with pytest.raises(StartRefused, match=r"database_password_file.*No such file"):
        settings.database()
    file.write_text("p@ss:w/rd\n")
    url = settings.database()
    assert url is not None
    assert (url.drivername, url.password, url.host, url.port) == ("postgresql+psycopg", "p@ss:w/rd", "there", 5433)
    assert "p@ss" not in repr(settings) + str(url)
    assert load_settings().database() is None


@pytest.mark.parametrize("name", ["checkpoint_dir", "model_dir"])
def test_places_are_folders_or_object_stores(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = {"checkpoint_dir": "checkpoints", "model_dir": "models"}[name]
    monkeypatch.chdir(tmp_path)
    assert getattr(load_settings(state_dir=tmp_path / "state"), read) == str(tmp_path / "state" / read)
    assert getattr(load_settings(**{name: "here"}), read) == str(tmp_path / "here")
    assert getattr(load_settings(**{name: "s3://bucket/x?region=y"}), read) == "s3://bucket/x?region=y"
    monkeypatch.setenv(f"EDGEWISE_{name.upper()}", "swift://hidden/x")
    with pytest.raises(StartRefused, match=rf"{name}: scheme 'swift' is not known; use a path, or one of file, s3, gs"):
        load_settings()
    monkeypatch.setenv(f"EDGEWISE_{name.upper()}", "s3://id:hidden@bucket/x")
    with pytest.raises(StartRefused, match=rf"{name}: .*holds no credentials: set them in the environment") as error:
        load_settings()
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("cluster", ["", "local:1", "local:12", "tcp://127.0.0.1:8786"])
def test_known_clusters(cluster: str) -> None:
    assert load_settings(cluster=cluster).cluster == cluster


@pytest.mark.parametrize(
    ("cluster", "word"),
    [
        ("local:0", "1 or more"),
        ("local:x", "local:2"),
        ("local", "local:2"),
        ("http://a", "known"),
    ],
)
def test_other_clusters_are_refused_by_name(cluster: str, word: str) -> None:
    with pytest.raises(StartRefused, match=word) as error:
        load_settings(cluster=cluster)
    assert repr(cluster) in str(error.value)


def test_a_wrong_value_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWISE_PORT", "seventy")
    with pytest.raises(StartRefused, match="port"):
        load_settings()
