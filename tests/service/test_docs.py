"""docs/http.md and docs/cli.md do what they say."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.settings import Settings
from tests.service.polling import wait_for_job, wait_until
from tests.service.tables_of_data import write_trees
from tests.service.test_cli import run

DOCS = Path(__file__).parents[2] / "docs"
HTTP = (DOCS / "http.md").read_text()
CLI = (DOCS / "cli.md").read_text()


def blocks(text: str, kind: str) -> Iterator[tuple[str, str]]:
    """Fenced blocks of a kind: what follows the kind in the fence's first line, and the content."""
    for found in re.finditer(r"^```(\w*) ?(.*)\n((?:(?!```).*\n)*)```$", text, re.MULTILINE):
        if found[1] == kind:
            yield found[2], found[3]


def test_the_requests_of_the_http_page(client: httpx.Client) -> None:
    wait_until(lambda: client.get("/readyz").status_code, lambda status: status == 200)
    job = ""
    for status, block in blocks(HTTP, "http"):
        head, _, body = block.partition("\n\n")
        method, path = head.splitlines()[0].split()
        headers = dict(line.split(": ") for line in head.splitlines()[1:])
        if body:
            headers["Content-Type"] = "application/json"
        answer = client.request(method, path.replace("{id}", job), headers=headers, content=body)
        assert answer.status_code == int(status), (block, answer.text)
        if (method, path) == ("POST", "/v1/jobs") and status == "202":
            job = answer.json()["id"]
            if "1000000" not in body:
                wait_for_job(client, job, "succeeded")
        if path.endswith("/cancel"):
            wait_for_job(client, job, "cancelled")


def test_the_http_page_tells_every_call(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()["paths"]
    told = {re.sub(r"\?.*", "", block.split()[1]) for _status, block in blocks(HTTP, "http")}
    told = {path.replace("{id}", "{job_id}").replace("trees", "{name}") for path in told}
    told = {re.sub(r"versions/1", "versions/{version}", path) for path in told}
    assert told == set(described)


def test_the_commands_of_the_cli_page(tmp_path: Path) -> None:
    write_trees(tmp_path / "trees.parquet")
    write_trees(tmp_path / "trees.test.parquet", n_rows=45, seed=1)
    [(_, job)] = blocks(CLI, "json")
    (tmp_path / "job.json").write_text(job)
    for _, block in blocks(CLI, "console"):
        for line in block.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            assert program == "edgewise"
            done = run(*arguments, cwd=tmp_path)
            assert done.returncode == 0, (line, done.stderr)
            if "--json" in arguments:
                json.loads(done.stdout)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_cli_page_tells_every_setting(name: str) -> None:
    assert f"`EDGEWISE_{name.upper()}`" in CLI
