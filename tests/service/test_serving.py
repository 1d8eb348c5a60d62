"""How `edgewise serve` sets its HTTP server up."""

from collections.abc import Callable

import httpx
import pytest
import uvicorn
from uvicorn.supervisors import Multiprocess

from service.serving import serve
from service.settings import Settings


@pytest.mark.parametrize("processes", [1, 2])
def test_a_client_gives_an_idle_connection_up_before_the_server_does(
    processes: int, make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a request that is sent while the server closes is lost: 'connection reset'."""
    configs: list[uvicorn.Config] = []

    def note(self: uvicorn.Server | Multiprocess, **_others: object) -> None:
        configs.append(self.config)

    monkeypatch.setattr(uvicorn.Server, "run", note)
    monkeypatch.setattr(Multiprocess, "run", note)
    monkeypatch.setattr("service.serving.share_between_processes", lambda: None)
    settings = make_settings(port=0).model_copy(update={"processes": processes})  # without PostgreSQL: nothing runs
    serve(settings, lambda _address: None)
    [config] = configs
    expiry = httpx.Limits().keepalive_expiry
    assert expiry is not None
    assert config.timeout_keep_alive > 60 > expiry  # balancers keep theirs for 60 s
