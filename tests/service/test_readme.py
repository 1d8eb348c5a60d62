"""README.md does what it says: its commands are run in order, in one folder, as a newcomer would."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx

from tests.service.live_server import ServeProcess
from tests.service.polling import wait_for_job
from tests.service.test_cli import run
from tests.service.test_docs import blocks

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


class Newcomer:
    """Someone in a folder who types the README's commands; a server, once started, stays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: ServeProcess | None = None
        self.job = ""

    def type(self, program: str, *arguments: str) -> None:
        getattr(self, program.removeprefix(".venv/bin/"))(*arguments)

    def make(self, target: str, *_comment: str) -> None:
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)

    def python(self, *arguments: str) -> None:
        command = [sys.executable, *arguments[:-1], str(self.folder / arguments[-1])]
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0

    def edgewise(self, command: str, *arguments: str) -> None:
        if command == "serve":
            assert arguments == ("--data-root", "data", "--state-dir", "state")
            self.server = ServeProcess(self.folder / "data", self.folder / "state")
            return
        done = run(command, *arguments, cwd=self.folder)
        assert done.returncode == 0, done.stderr

    def curl(self, silent: str, address: str, *flags: str) -> None:
        assert silent == "-s"
        assert self.server
        path = address.removeprefix("localhost:8000").replace("JOB_ID", self.job)
        headers, content = None, None
        if flags:
            header, head, data, content = flags
            assert (header, data) == ("-H", "-d")
            headers = dict([head.split(": ")])
            content = (self.folder / content[1:]).read_text() if content.startswith("@") else content
        answer = self.server.client.request("POST" if content else "GET", path, headers=headers, content=content)
        self._read(path, answer.raise_for_status())

    def _read(self, path: str, answer: httpx.Response) -> None:
        assert self.server
        if path == "/v1/jobs":
            self.job = answer.json()["id"]
            wait_for_job(self.server.client, self.job, "succeeded")
        if path.endswith("/predict"):
            assert answer.json()["labels"] == [0]
        if "/rounds" in path:
            assert [record["round"] for record in answer.json()["rounds"]] == list(range(291, 301))


def test_the_commands_of_the_readme(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    [(_, job)] = blocks(README, "json")
    (tmp_path / "job.json").write_text(json.dumps(json.loads(job)))
    try:
        for _, block in blocks(README, "sh"):
            lines = re.split(r"\n(?=\S)", block.strip())
            for line in lines:
                newcomer.type(*shlex.split(line, comments=True))
    finally:
        if newcomer.server:
            assert newcomer.server.stop() == 0
            newcomer.server.close()
    assert {"digits.edgewise", "labels.parquet"} <= {path.name for path in tmp_path.iterdir()}


def test_what_documents_name_is_there() -> None:
    """Every path in backticks or behind a link in the project's own pages."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        text = page.read_text()
        linked = re.findall(r"\]\(([^)#:]+)\)", text)
        named = re.findall(r"`((?:boost_core|workers|service|tests|benchmarks|docs|demo)/[\w/.-]*)`", text)
        missing = [name for name in linked if not (page.parent / name).exists()]
        missing += [name for name in named if not (ROOT / name).exists()]
        assert missing == [], page.name
