"""The web pages as people see them: a real browser, a real server, real jobs."""

import contextlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from fastapi import FastAPI
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.alert import Alert
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import alert_is_present
from selenium.webdriver.support.wait import WebDriverWait

from service.cli_init import make_secrets
from service.keys import Scope, key_of, new_text
from service.profile import NAMES
from service.settings import Settings
from tests.service.browser import browsing, complaints, find_programs, required, resize
from tests.service.live_server import in_thread
from tests.service.polling import wait_for_job, wait_until
from tests.service.tables_of_data import request, write, write_trees

CLASSES = ("<script>document.title='taken'</script>", "birch & oak", '"><img src=x onerror=document.title=1>')
FEATURE = "<b>height</b>"
DOOMED = "<img src=x onerror=document.title=1>.parquet"
TRAINED = {"valid": "odd.parquet", "train": "odd.parquet", "label": "kind"}
WIDTHS = (1280, 1000, 400)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser that the tests of this module share; each starts with an empty page."""
    with browsing(required(find_programs()), tmp_path_factory.mktemp("browser")) as driver:
        yield driver


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with a job that succeeded, one that failed, and a model; names are as odd as data can make them."""
    folder = tmp_path_factory.mktemp("pages")
    root = folder / "data"
    write_odd(root / "odd.parquet")
    write_trees(root / "trees.parquet")
    write_trees(root / DOOMED)
    with in_thread(Settings(data_root=root, state_dir=folder / "state", poll_seconds=0.1)) as (client, _app):
        wait_until(lambda: client.get("/readyz").status_code, lambda status: status == 200)
        submit(client, name="odd", data=TRAINED, rounds=40, profile=True)
        doomed = submit(client, name="doomed", data={"train": DOOMED, "label": "kind"})
        (root / DOOMED).unlink()
        wait_for_job(client, doomed, "failed")
        yield client


def write_odd(path: Path) -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, len(CLASSES), 300)
    columns = {FEATURE: pa.array(kinds + rng.normal(0, 1, 300)), "girth": pa.array(rng.normal(0, 1, 300))}
    write(path, {**columns, "kind": pa.array([CLASSES[kind] for kind in kinds])})


def submit(client: httpx.Client, **changes: Any) -> str:
    identity: str = client.post("/v1/jobs", json=request(**changes)).raise_for_status().json()["id"]
    return identity


def job_named(client: httpx.Client, name: str) -> dict[str, Any]:
    [found] = [job for job in client.get("/v1/jobs").json()["jobs"] if job["name"] == name]
    job: dict[str, Any] = client.get(f"/v1/jobs/{found['id']}").json()
    return job


@contextlib.contextmanager
def endless_job(client: httpx.Client, **changes: Any) -> Iterator[str]:
    """A job that runs until it is cancelled, here or in the block."""
    identity = submit(client, rounds=1_000_000, **changes)
    try:
        wait_until(lambda: client.get(f"/v1/jobs/{identity}").json()["rounds_done"], lambda done: done > 1)
        yield identity
    finally:
        client.post(f"/v1/jobs/{identity}/cancel")
        wait_for_job(client, identity)


class Page:
    """What a test does with a page."""

    def __init__(self, driver: Chrome, base: httpx.URL) -> None:
        self.driver = driver
        self._base = base

    def open(self, path: str, width: int = 1280) -> None:
        resize(self.driver, width)
        self.driver.get("about:blank")  # what the page before still asks for, perhaps of a server that is gone, ends
        complaints(self.driver)
        self.driver.get(str(self._base.join(path)))

    def see(self, text: str, selector: str = "body") -> None:
        """Waits until an element that can be seen has the text."""
        wait_until(lambda: self.texts(selector), lambda texts: any(text in each for each in texts), 60)

    def wait(self, script: str, wanted: Callable[[Any], bool] = bool) -> Any:
        """What a script returns once it is what is wanted."""
        return wait_until(lambda: self.driver.execute_script(script), wanted, 60)

    def texts(self, selector: str) -> list[str]:
        script = (
            "return [...document.querySelectorAll(arguments[0])].filter((e) => e.offsetParent || e === document.body)"
        )
        return list(self.driver.execute_script(f"{script}.map((e) => e.innerText)", selector))

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def rows(self, heading: str) -> list[list[str]]:
        """The cells of the table of the section with this heading's id."""
        script = (
            "return [...document.querySelectorAll(`section[aria-labelledby=${arguments[0]}] tbody tr`)]"
            ".map((row) => [...row.cells].map((cell) => cell.innerText))"
        )
        return list(self.driver.execute_script(script, heading))

    def ask_to_cancel(self) -> Alert:
        """Presses the button; the question whether it is meant."""
        self.one("button.danger").click()
        found: Alert = WebDriverWait(self.driver, 60).until(alert_is_present())
        return found

    def is_live(self) -> bool:
        return self.one("#live").is_displayed()


@pytest.fixture
def page(browser: Chrome, server: httpx.Client) -> Page:
    """The pages of the server that the tests share."""
    return Page(browser, server.base_url)


def test_an_empty_list_says_so(browser: Chrome, client: httpx.Client) -> None:
    page = Page(browser, client.base_url)
    page.open("/")
    page.see("No job has been submitted yet")
    assert page.texts("h1") == ["Jobs"]
    page.open("/models")
    page.see("No model has been registered yet")
    assert not page.is_live()
    assert complaints(browser) == []


def test_complaints_are_those_of_the_page_that_is_open(page: Page) -> None:
    page.open("/jobs/nobody")
    page.driver.execute_script("setInterval(() => fetch('/nowhere'), 1)")
    assert wait_until(lambda: complaints(page.driver), bool, 60)
    page.open("/models")
    page.see("odd", "td")
    assert complaints(page.driver) == []


def test_the_list_tells_of_every_job(page: Page, server: httpx.Client) -> None:
    page.open("/")
    page.see("doomed", "td")
    cells = {row.find_element(By.TAG_NAME, "a").text: row.text for row in page.all("tbody tr")}
    odd = job_named(server, "odd")
    assert "succeeded" in cells["odd"]
    assert "adaboost_mh" in cells["odd"]
    assert "40 of 40 rounds" in cells["odd"]
    assert f"{100 * odd['answer']['valid_error']:.1f} % validation" in cells["odd"].replace("\n", " ")
    assert "failed" in cells["doomed"]
    page.one('.choices a[href="/?status=failed"]').click()
    page.see("doomed", "td")
    assert page.texts("tbody a") == ["doomed"]
    page.one('.choices a[href="/?status=paused"]').click()
    page.see("No job is paused here")
    assert complaints(page.driver) == []


def test_a_long_list_has_pages(browser: Chrome, client: httpx.Client) -> None:
    page = Page(browser, client.base_url)
    with endless_job(client, name="first"):
        for number in range(26):
            submit(client, name=f"job{number}")
        page.open("/")
        page.see("job25", "td")
        assert len(page.all("tbody tr")) == 25
        assert page.is_live()  # jobs wait
        page.driver.find_element(By.LINK_TEXT, "Older jobs").click()
        page.see("first", "td")
        assert page.texts("tbody a") == ["job0", "first"]
        page.driver.find_element(By.LINK_TEXT, "Newest jobs").click()
        page.see("job25", "td")
    assert complaints(browser) == []


def test_a_running_job_is_followed_and_cancelled(page: Page, server: httpx.Client) -> None:
    data = {"train": "trees.parquet", "valid": "trees.parquet", "label": "kind"}
    with endless_job(server, name="endless", data=data, profile=True) as job:
        page.open(f"/jobs/{job}")
        page.see("Rounds are being trained", '[role="status"]')
        assert page.is_live()
        read_round = "return Number(document.querySelector('.figures dd').innerText.replace(/\\D/g, ''))"
        first = page.wait(read_round)
        page.wait(read_round, lambda later: later > first)
        titles = [figure.text for figure in page.all("figcaption")]
        assert titles[:4] == ["Error", "Edge", "Loss and bounds (logarithmic)", "Alpha (step)"]
        # Charts are drawn anew with every reading, so nothing may hold on to one.
        label = page.driver.execute_script(
            "return document.querySelector('figure .plot svg').getAttribute('aria-label')"
        )
        assert re.match(r"Error: training from .* at [0-9]+ to .*; validation from .* at [0-9]+ to ", label)
        stages = {row[0]: row for row in page.rows("time")}
        assert {"histograms", "search for cuts", "scores and errors", "validation"} <= set(stages)
        assert page.all("rect.stage")
        page.ask_to_cancel().dismiss()
        assert server.get(f"/v1/jobs/{job}").json()["status"] == "running"
        page.ask_to_cancel().accept()
        page.see("cancelled", ".head .badge")
        page.wait("return document.getElementById('live').hidden")
        assert not page.one("button.danger").is_displayed()
        assert page.rows("history")[-1][1:] == ["cancelled", "1", "cancelled on request"]
        page.see("reading, binning, compilation", "td")  # what is known without an answer stays
    assert complaints(page.driver) == []


def test_nobody_asks_while_nobody_looks(page: Page, server: httpx.Client) -> None:
    hide = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => %s});"
    tell = "document.dispatchEvent(new Event('visibilitychange'));"
    with endless_job(server, name="hidden") as job:
        page.open(f"/jobs/{job}")
        page.wait("return !document.getElementById('live').hidden")
        page.driver.execute_script(hide % "true" + tell)
        page.wait("return document.getElementById('live').hidden")
        done = server.get(f"/v1/jobs/{job}").json()["rounds_done"]
        page.driver.execute_script(hide % "false" + tell)
        read_round = "return Number(document.querySelector('.figures dd').innerText.replace(/\\D/g, ''))"
        page.wait(read_round, lambda shown: shown >= done)
    assert complaints(page.driver) == []


FOLLOWED = """
const [answers, done] = arguments;
(async () => {
  const real = window.setTimeout;
  const planned = [];
  window.setTimeout = (act, pause) => planned.push([act, pause]);
  const { follow } = await import("/assets/follow.js");
  const told = [];
  const step = async () => {
    const answer = answers.shift();
    if (typeof answer === "boolean") return answer;
    throw Object.assign(new Error("no"), { passes: answer === "passes" });
  };
  const pauses = [];
  const settled = () => new Promise((go) => real.call(window, go, 0));
  follow(step, (problem) => told.push(problem === null ? "" : "problem"));
  await settled();
  while (planned.length) {
    const [act, pause] = planned.shift();
    pauses.push(pause);
    act();
    await settled();
  }
  done({ pauses, told, left: answers.length });
})();
"""


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        ([True, True, False, True], [1500, 1500]),
        ([True, "passes", "passes", True, False], [1500, 3000, 6000, 1500]),
        (["passes"] * 6 + ["for ever", True], [3000, 6000, 12000, 15000, 15000, 15000]),
        ([False, True], []),
    ],
)
def test_pauses_between_readings(page: Page, answers: list[bool | str], pauses: list[int]) -> None:
    page.open("/jobs/nobody")  # a page that has stopped asking by itself
    page.see("There is no job 'nobody'")
    found = page.driver.execute_async_script(FOLLOWED, answers)
    assert found["pauses"] == pauses
    read = len(pauses) + 1
    assert found["left"] == len(answers) - read
    assert found["told"] == ["" if isinstance(answer, bool) else "problem" for answer in answers[:read]]


def test_a_finished_job_tells_where_its_time_went(page: Page, server: httpx.Client) -> None:
    job = job_named(server, "odd")
    page.open(f"/jobs/{job['id']}")
    page.see("The model is trained and registered")
    stages = [row for row in job["answer"]["profile"]["stages"] if row["seconds"] > 0]
    shown = page.rows("time")
    assert [row[0] for row in shown] == [NAMES[row["stage"]] for row in stages]
    for row, cells in zip(stages, shown, strict=True):
        assert share_of(cells[1]) == pytest.approx(100 * row["share"], rel=0.06, abs=0.1)
        assert seconds_of(cells[2]) == pytest.approx(row["seconds"], rel=0.01)
    widths = page.driver.execute_script("return [...document.querySelectorAll('.filling')].map((e) => e.style.width)")
    assert [float(width.rstrip("%")) for width in widths] == pytest.approx(
        [100 * row["share"] for row in stages], rel=1e-3, abs=1e-3
    )
    figures = dict(pair.text.split("\n") for pair in page.all("section[aria-labelledby=figures] dl div"))
    assert figures["Model"] == "odd, version 1"
    assert figures["Rows of each member"] == "300"
    assert figures["Memory, measured"] == f"{size(job['answer']['peak_memory_bytes'])} at most on a member"
    assert not page.is_live()
    assert ["algorithm.weak_learner.max_leaves", "4"] in page.rows("parameters")
    assert [row[1] for row in page.rows("history")] == ["queued", "starting", "running", "succeeded"]
    assert complaints(page.driver) == []


def size(n_bytes: int) -> str:
    """As pages tell it, of a process: some hundred MB, or more where it has run other tests before."""
    for unit, worth in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= worth:
            return f"{float(f'{n_bytes / worth:.3g}'):g} {unit}"
    raise AssertionError(f"{n_bytes} bytes are too few for a process")


def share_of(text: str) -> float:
    return float(re.sub(r"[<%\s]", "", text))


def seconds_of(text: str) -> float:
    value, unit = text.split()
    return float(value) * {"µs": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def test_the_mark_goes_through_the_rounds_by_keyboard(page: Page, server: httpx.Client) -> None:
    job = job_named(server, "odd")
    rounds = server.get(f"/v1/jobs/{job['id']}/rounds").json()["rounds"]
    page.open(f"/jobs/{job['id']}")
    page.see("Margins", "h2")
    slider = page.one("input#round")
    assert slider.get_attribute("aria-valuetext") == "round 40"
    slider.send_keys(Keys.HOME)
    assert slider.get_attribute("aria-valuetext") == "round 1"
    slider.send_keys(Keys.ARROW_RIGHT)
    figures = dict(pair.text.split("\n") for pair in page.all(".figures dl div"))
    assert figures["Round"] == "2"
    assert float(figures["Edge"]) == pytest.approx(rounds[1]["edge"], rel=1e-3)
    marks = page.driver.execute_script(
        "return [...document.querySelectorAll('line.mark')].map((e) => e.getAttribute('x1'))"
    )
    assert len(marks) == 4
    assert len(set(marks)) == 1


def test_the_report_of_a_model(page: Page, server: httpx.Client) -> None:
    page.open(f"/jobs/{job_named(server, 'odd')['id']}")
    page.see("odd, version 1", "dd a")
    page.driver.find_element(By.LINK_TEXT, "odd, version 1").click()
    page.see("Classes (3)", "h2")
    assert page.texts("ul.values li") == sorted(CLASSES)
    assert [FEATURE, "double"] in page.rows("features")
    sha256 = server.get("/v1/models/odd/versions/1").json()["sha256"]
    page.see(sha256, "dd")
    page.driver.find_element(By.LINK_TEXT, "Models").click()
    page.see("odd", "td")
    assert nothing_was_run(page)
    assert complaints(page.driver) == []


def test_why_a_job_failed_is_text(page: Page, server: httpx.Client) -> None:
    job = job_named(server, "doomed")
    assert DOOMED in job["reason"]
    page.open(f"/jobs/{job['id']}")
    page.see(job["reason"], ".reason.failed")
    page.see("No round was trained")
    assert page.rows("history")[-1][3] == job["reason"]
    assert nothing_was_run(page)
    assert complaints(page.driver) == []


def nothing_was_run(page: Page) -> bool:
    """Whether nothing that came from data became an element."""
    assert page.all("main img, main script, main b") == []
    return "Edgewise" in page.driver.title


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/jobs/nobody", "There is no job 'nobody'."),
        ("/jobs/%3Cimg%20src=x%3E", "There is no job '<img src=x>'."),
        ("/models/none/versions/1", "There is no model 'none'"),
        ("/models/odd/versions/x", "should be a valid integer"),
        ("/?status=lost", "or 'cancelled', got 'lost'"),
    ],
)
def test_what_is_not_there_is_said(page: Page, path: str, words: str) -> None:
    page.open(path)
    page.see(words, "#trouble")
    page.see("Nothing to show")
    assert not page.is_live()
    assert nothing_was_run(page)


def test_a_server_that_is_away_is_tried_again(page: Page, server: httpx.Client) -> None:
    wire = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.driver.execute_cdp_cmd("Network.enable", {})
    with endless_job(server, name="away") as job:
        page.open(f"/jobs/{job}")
        page.see("Rounds are being trained")
        page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **wire})
        page.see("The server does not answer. Trying again …", "#trouble")
        page.see("Rounds are being trained")  # what was read before stays
        page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **wire})
        page.wait("return document.getElementById('trouble').hidden")
    page.driver.execute_cdp_cmd("Network.disable", {})


@pytest.fixture
def locked(make_settings: Callable[..., Settings], tmp_path: Path) -> Iterator[tuple[httpx.Client, FastAPI]]:
    """A server that asks for keys."""
    make_secrets(tmp_path)
    settings = make_settings(require_keys=True, admin_key_file=tmp_path / "admin-key")
    with in_thread(settings) as (client, app):
        client.headers["Authorization"] = f"Bearer {(tmp_path / 'admin-key').read_text().strip()}"
        yield client, app


def test_a_key_is_asked_for_once_and_kept_in_the_tab(browser: Chrome, locked: tuple[httpx.Client, FastAPI]) -> None:
    client, app = locked
    page, key = Page(browser, client.base_url), new_text()
    app.state.services.keys._store.add_key(key_of(key, "reader", [Scope.READ], datetime.now(UTC)))
    page.open("/")
    page.see("This server needs an API key.", "#key-why")
    assert browser.switch_to.active_element.get_attribute("id") == "key"
    enter(page, new_text())
    page.see("The API key is not known or was revoked.", "#key-why")
    enter(page, key)
    page.see("No job has been submitted yet")
    assert kept(browser) == [{"edgewise-key": key}, {}, "", f"{client.base_url}/"]
    page.open("/models")
    page.see("No model has been registered yet")  # not asked again
    with endless_job(client, name="endless") as job:
        page.open(f"/jobs/{job}")
        page.see("Rounds are being trained")
        page.ask_to_cancel().accept()
        page.see("has scope read; this call needs train", "#trouble")
        assert client.get(f"/v1/jobs/{job}").json()["status"] == "running"
    page.one("#forget").click()
    page.see("This server needs an API key.", "#key-why")
    assert kept(browser)[0] == {}
    page.one("#key-cancel").click()
    page.see("Load the page again to enter one", "#trouble")


def enter(page: Page, key: str) -> None:
    page.one("#key").send_keys(key, Keys.ENTER)


def kept(browser: Chrome) -> list[Any]:
    """What the browser keeps of a key: of this tab, for ever, as cookies, in the address."""
    script = "return [{...sessionStorage}, {...localStorage}, document.cookie, location.href]"
    return list(browser.execute_script(script))


ACCESS = """
const labels = ["aria-label", "aria-labelledby"];
const named = (e) => e.labels?.length || labels.some((name) => e.getAttribute(name)) || e.innerText;
return {
  wide: document.documentElement.scrollWidth - innerWidth,
  nameless: [...document.querySelectorAll("input, button, a, progress, svg[role=img], [role=region], section, nav")]
    .filter((e) => !named(e)).map((e) => e.outerHTML.slice(0, 80)),
  heads: [...document.querySelectorAll("table")].filter((e) => !e.caption || !e.querySelector("th[scope=col]")).length,
  h1: document.querySelectorAll("h1").length,
  twice: [...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i),
  skip: (document.querySelector("a.skip").focus(), document.activeElement.className),
};
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_and_has_names(page: Page, server: httpx.Client, width: int) -> None:
    for path, ready in (
        ("/", "doomed"),
        (f"/jobs/{job_named(server, 'odd')['id']}", "Where the time went"),
        (f"/jobs/{job_named(server, 'doomed')['id']}", "No round was trained"),
        ("/models", "odd"),
        ("/models/odd/versions/1", "Classes"),
        ("/jobs/nobody", "Nothing to show"),
    ):
        page.open(path, width)
        page.see(ready, "main")
        found = page.driver.execute_script(ACCESS)
        assert found["wide"] <= 0, path
        assert (found["nameless"], found["heads"], found["twice"]) == ([], 0, []), path
        assert found["h1"] == (0 if path == "/jobs/nobody" else 1)
        assert found["skip"] == "skip"


def test_a_job_of_many_rounds_is_read_in_parts(page: Page) -> None:
    """Of 100,000 rounds some 1,500 are read at most, and always the last one: of a made-up API."""
    script = """
    const done = arguments[0];
    const told = [];
    window.fetch = async (path) => {
      const query = new URL(path, location.href).searchParams;
      const [after, limit, every] = ["after", "limit", "every"].map((name) => Number(query.get(name)));
      const rounds = [];
      for (let round = after + 1; round <= window.rounds && rounds.length < limit; round += 1) {
        if (round % every === 0) rounds.push({ round });
      }
      told.push(rounds.length);
      const answer = { run: window.run, rounds, next_after: rounds.at(-1)?.round ?? after };
      return new Response(JSON.stringify(answer), { status: 200 });
    };
    (async () => {
      const { Rounds } = await import("/assets/rounds.js");
      const rounds = new Rounds("x");
      const seen = [];
      for (const [run, number] of [[1, 700], [1, 1400], [1, 100001], [1, 100003], [2, 3]]) {
        [window.run, window.rounds] = [run, number];
        const list = await rounds.read({ run, rounds_done: number, latest: { round: number } });
        seen.push([list.length, list.at(-1).round, rounds.every]);
      }
      done([seen, told]);
    })();
    """
    page.open("/jobs/nobody")
    page.see("Nothing to show")
    seen, told = page.driver.execute_async_script(script)
    assert seen == [[700, 700, 1], [1400, 1400, 1], [782, 100001, 128], [782, 100003, 128], [3, 3, 1]]
    assert sum(told) == 700 + 700 + 771 + 0 + 3


REFUSED = """
const done = arguments[0];
const attempts = [
  () => { document.querySelector("main").innerHTML = "<b>text</b>"; },
  () => { document.querySelector("main").append(Object.assign(document.createElement("script"), { text: "1" })); },
  () => Function("return 1")(),
];
// Not at once: what a driver runs itself may do more than a page.
setTimeout(() => done(attempts.map((attempt) => {
  try {
    attempt();
    return "done";
  } catch (error) {
    return error.name;
  }
})), 0);
"""


def test_the_browser_refuses_what_the_policy_forbids(page: Page) -> None:
    page.open("/jobs/nobody")
    page.see("Nothing to show")
    assert page.driver.execute_async_script(REFUSED) == ["TypeError", "TypeError", "EvalError"]
