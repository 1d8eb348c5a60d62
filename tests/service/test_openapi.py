"""The OpenAPI description is whole, and no request that it allows, or nearly allows, breaks the server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from service.settings import Settings
from tests.service.live_server import in_thread
from tests.service.polling import wait_for_job
from tests.service.tables_of_data import request
from tests.service.test_api_bad_input import checked_problem

EXAMPLES = 40  # requests of each kind to each operation


@pytest.fixture(scope="module")
def fuzzed(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with a model and a job."""
    state = tmp_path_factory.mktemp("fuzz") / "state"
    with in_thread(Settings(data_root=data_root, state_dir=state)) as (client, _app):
        job = client.post("/v1/jobs", json=request()).json()
        wait_for_job(client, job["id"], "succeeded")
        yield client


def operations(client: httpx.Client) -> list[Any]:
    """Every operation of the description, as a source of requests."""
    schema = schemathesis.openapi.from_url(str(client.base_url.join("/openapi.json")))
    return [found.ok() for found in schema.get_all_operations()]


def send(case: schemathesis.Case) -> None:
    """Sends one request; whatever it was, the answer is not a fault of the server."""
    response = case.call()
    headers = [(name, value) for name, values in response.headers.items() for value in values]
    answer = httpx.Response(response.status_code, headers=headers, content=response.content)
    assert answer.status_code < 500, (case.as_curl_command(), answer.text)
    if answer.status_code >= 400:
        checked_problem(answer)


def test_no_request_breaks_the_server(fuzzed: httpx.Client, subtests: pytest.Subtests) -> None:
    for operation in operations(fuzzed):
        with subtests.test(operation.label):
            explore(operation, schemathesis.GenerationMode.POSITIVE)
            if operation.body or operation.query:
                explore(operation, schemathesis.GenerationMode.NEGATIVE)


def explore(operation: Any, mode: schemathesis.GenerationMode) -> None:
    """Requests to one operation that its description allows (positive) or forbids (negative)."""

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: schemathesis.Case) -> None:
        send(case)

    run()


def references(node: Any) -> Iterator[str]:
    """Every $ref in a description."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_the_description_is_whole(fuzzed: httpx.Client) -> None:
    described = fuzzed.get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    for reference in references(described):
        assert reference.removeprefix("#/components/schemas/") in schemas
    wanted = {
        "/v1/jobs", "/v1/jobs/{job_id}", "/v1/jobs/{job_id}/rounds", "/v1/jobs/{job_id}/cancel",
        "/v1/jobs/{job_id}/resume", "/v1/algorithms",
        "/v1/models", "/v1/models/{name}", "/v1/models/{name}/versions/{version}", "/v1/models/{name}/predict",
        "/v1/models/{name}/versions/{version}/predict", "/healthz", "/readyz", "/metrics",
    }  # fmt: skip
    assert set(described["paths"]) == wanted
    assert schemas["TrainingRequest"]["required"] == ["data", "algorithm", "rounds"]
    assert schemas["TrainingRequest"]["additionalProperties"] is False
    for path in described["paths"].values():
        for operation in path.values():
            assert "application/problem+json" in operation["responses"]["default"]["content"]
            assert operation["summary"]
            assert "HTTPValidationError" not in str(operation)


def test_the_pages_for_people(fuzzed: httpx.Client) -> None:
    assert "swagger" in fuzzed.get("/docs").text.lower()
