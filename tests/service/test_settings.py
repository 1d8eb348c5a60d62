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
def test_a_host_that_others_reach_is_refused_by_name(host: str) -> None:
    with pytest.raises(StartRefused, match="API keys") as error:
        load_settings(host=host)
    assert repr(host) in str(error.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("cluster", ["", "local:1", "local:12", "tcp://127.0.0.1:8786"])
def test_known_clusters(cluster: str) -> None:
    assert load_settings(cluster=cluster).cluster == cluster


@pytest.mark.parametrize(
    ("cluster", "word"),
    [
        ("tls://a:1", "TLS"),
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
