"""The web pages as files: what is served with which headers, and what keeps them safe and readable."""

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.cli_init import make_secrets
from service.job_states import JobState
from service.pages.routes import STATIC
from service.profile import NAMES
from service.settings import Settings
from tests.service.test_api_bad_input import checked_problem

ROOT = Path(__file__).parents[2]
PAGES = ("/", "/jobs/0123", "/models", "/models/trees/versions/1")
SCRIPTS = sorted(path.name for path in STATIC.glob("*.js"))
STYLE = (STATIC / "style.css").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server that asks for keys; its client has none."""
    folder = tmp_path_factory.mktemp("site")
    make_secrets(folder)
    settings = Settings(
        data_root=folder, state_dir=folder / "state", require_keys=True, admin_key_file=folder / "admin-key"
    )
    with TestClient(create_app(settings)) as client:
        yield client


def policy_of(answer: httpx.Response) -> dict[str, str]:
    parts = (part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";"))
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_there_for_everybody_and_strict(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = policy_of(answer)
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"
    head = site.head(path)
    assert (head.status_code, head.content) == (200, b"")
    # Steering is no page: that a path is open to readers opens nothing else.
    assert checked_problem(site.post(path))["status"] == 401


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/models", "/jobsx", "/assetsx/main.js", "/model", "/v1//jobs/x"])
def test_what_is_no_page_needs_a_key(site: TestClient, path: str) -> None:
    assert checked_problem(site.get(path))["status"] == 401


@pytest.mark.parametrize("name", [path.name for path in sorted(STATIC.iterdir())])
def test_assets_are_served_and_asked_for_again(site: TestClient, name: str) -> None:
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
    answer = site.get(f"/assets/{name}")
    assert answer.content == (STATIC / name).read_bytes()
    assert answer.headers["content-type"].split(";")[0] == kinds[Path(name).suffix]
    assert "'none'" in policy_of(answer)["default-src"]
    again = site.get(f"/assets/{name}", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["none.js", "../routes.py", "..%2froutes.py", "%2e%2e/routes.py", "", ".", "a\0b"])
def test_nothing_else_is_served_from_there(site: TestClient, name: str) -> None:
    # As it stands: the client would resolve the dots itself.
    answer = site.get("http://testserver/assets/" + name.replace("\0", "%00"))
    assert answer.status_code in {401, 404}
    checked_problem(answer)


class Markup(HTMLParser):
    """What of a page matters here."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside in {"script", "style"} and data.strip():
            self.inline.append(data)


def test_the_shell_holds_no_script_and_asks_nobody_else() -> None:
    markup = Markup()
    markup.feed((STATIC / "page.html").read_text())
    assert markup.inline == []
    for tag, attributes in markup.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        for name in ("src", "href"):
            address = attributes.get(name) or "/"
            assert re.match(r"[/#](?!/)", address), (tag, address)
            assert not address.startswith("/assets/") or (STATIC / address.removeprefix("/assets/")).is_file()
    labelled = {attributes["for"] for tag, attributes in markup.elements if tag == "label"}
    assert {attributes["id"] for tag, attributes in markup.elements if tag == "input"} == labelled
    assert next(attributes for tag, attributes in markup.elements if tag == "html") == {"lang": "en"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_make_no_markup_of_text(name: str) -> None:
    text = (STATIC / name).read_text()
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage|cookie"
    assert re.findall(forbidden, text) == []
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == []
    for imported in re.findall(r'^import .* from "(.*)";$', text, re.MULTILINE):
        assert (STATIC / imported).is_file(), imported
    assert len(text.splitlines()) <= 400
    assert max(map(len, text.splitlines())) <= 120


def test_pages_know_every_stage_and_every_state() -> None:
    stages = (STATIC / "stages.js").read_text()
    [names] = re.findall(r"export const NAMES = \{\n(.*?)\};", stages, re.DOTALL)
    assert dict(re.findall(r'^  (\w+): "(.*)",$', names, re.MULTILINE)) == NAMES
    [states] = re.findall(r"export const STATES = \[(.*)\];", (STATIC / "job_figures.js").read_text())
    assert re.findall(r'"(\w+)"', states) == [state.value for state in JobState]


def luminance(colour: str) -> float:
    """Of an sRGB colour #rrggbb, in [0, 1] (WCAG 2.2, relative luminance)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
def test_text_and_lines_stand_out(place: int) -> None:
    palettes = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    assert len(palettes) == 2
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", palettes[place]))
    texts = ("text", "faint", "accent", "good", "bad", "warn")
    low = {name for name in texts for back in ("back", "raised") if contrast(colours[name], colours[back]) < 4.5}
    assert low == set()
    assert contrast(colours["accent"], colours["on-accent"]) >= 4.5
    marks = [name for name in colours if re.fullmatch(r"[abc]|s\d|rest", name)]
    assert len(marks) == 11
    assert {name for name in marks if contrast(colours[name], colours["back"]) < 3} == set()


def test_a_wheel_holds_the_pages(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    for package in ("boost_core", "workers", "service"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "*.nb[ci]"))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w"]
    done = subprocess.run([*command, "dist", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [wheel] = (tmp_path / "dist").iterdir()
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("service/pages/static/")}
    assert held == {f"service/pages/static/{path.name}" for path in STATIC.iterdir()}


def test_without_keys_pages_are_the_same(make_settings: Callable[..., Any], site: TestClient) -> None:
    with TestClient(create_app(make_settings())) as client:
        assert client.get("/").content == site.get("/").content
