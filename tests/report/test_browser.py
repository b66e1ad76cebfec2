"""The report in a real browser: wide and narrow, light and dark, without network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everlearn.report import (
    VERDICTS,
    Bar,
    Dot,
    ExperimentInfo,
    ExperimentResult,
    Figure,
    Finding,
    Lead,
    Line,
    Reproduction,
    Table,
    Verdict,
    draw_bars,
    draw_dots,
    draw_lines,
    group_runs,
    write_report,
)
from everlearn.report.charts.curves import draw_curves
from everlearn.runs.load import load_runs

pytest.importorskip("matplotlib")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    # Where a browser is required, as in .ci/run, these tests fail without one.
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("EVERLEARN_NEEDS_BROWSER"),
        reason="no chromium is on PATH",
    ),
]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--no-first-run", "--disable-extensions",
)  # fmt: skip
BACKGROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}
PUBLISHED = Path(__file__).parents[2] / "docs" / "report" / "index.html"
VIEWS = [*product((1280, 390), BACKGROUND)]
# All texts of visible figures that leave the figure, or overlap another text of it.
CUT = """[...document.querySelectorAll("figure svg")].filter(svg => svg.checkVisibility()).flatMap(svg => {
  const edge = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
  const out = texts.filter(([, r]) => r.left < edge.left - 1 || r.right > edge.right + 1
    || r.top < edge.top - 1 || r.bottom > edge.bottom + 1);
  const met = texts.filter(([, r], i) => texts.some(([, q], j) => j < i
    && r.left < q.right - 1 && q.left < r.right - 1 && r.top < q.bottom - 3 && q.top < r.bottom - 3));
  return [...out, ...met].map(([words]) => words);
})"""


# All boxes whose content is wider than they are.
SCROLLING = """[...document.querySelectorAll(".table-box, pre, code, dd")]
  .filter(box => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0)
  .map(box => box.textContent.slice(0, 60))"""


class Browser:
    """A page of Chromium, controlled through a pipe with zero-terminated JSON messages."""

    def __init__(self, home: Path) -> None:
        self.read, theirs = os.pipe()
        mine, self.write = os.pipe()
        command = f'exec "$0" "$@" 3<&{mine} 4>&{theirs}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, str(CHROMIUM), *FLAGS, f"--user-data-dir={home}"],
            pass_fds=(mine, theirs), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(mine)
        os.close(theirs)
        self.events: list[dict[str, Any]] = []
        self._rest, self._count, self._session = b"", 0, ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        asked = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = asked["sessionId"]
        for name in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{name}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        session = {"sessionId": self._session} if self._session else {}
        os.write(self.write, json.dumps(message | session).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._count:
                assert "error" not in found, found
                return found["result"]

    def load(self, url: str) -> None:
        """Open a page and wait until it is loaded."""
        self.events.clear()
        self.ask("Page.navigate", url=url)
        while not self.events_of("Page.loadEventFired"):
            self._receive()

    def value(self, code: str) -> Any:
        """Evaluate an expression on the page."""
        return self.ask("Runtime.evaluate", expression=code, returnByValue=True)["result"].get(
            "value"
        )

    def events_of(self, name: str) -> list[dict[str, Any]]:
        """Return the events of this name since the page was loaded."""
        return [event["params"] for event in self.events if event.get("method") == name]

    def close(self) -> None:
        """Close the browser."""
        os.write(self.write, b'{"id": 0, "method": "Browser.close"}\0')
        self.process.wait(20)
        os.close(self.write)
        os.close(self.read)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            got = os.read(self.read, 1 << 16)
            assert got, "the browser has exited"
            self._rest += got
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        self.events.append(found)
        return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


def _figures() -> list[Figure]:
    rise = np.linspace(0.1, 0.9, 50)
    methods = (
        "dcl",
        "er",
        "ewc",
        "lwf",
        "si",
        "joint",
        "agem",
        "icarl",
        "gdumb",
        "der",
        "l2",
        "gem",
    )
    lines = [
        Line(f"{m}, buffer size 5000", m, np.arange(1, 51), rise**k, rise**k * 0.9, rise**k)
        for k, m in enumerate(methods, 1)
    ]
    random = np.random.default_rng(0)
    dots = [Dot(m, m, 10 ** random.uniform(5, 8), float(random.random() ** 3)) for m in methods]
    bars = [Bar(f"{m}, with a label that is long", m, 0.5, 0.4, 0.6) for m in methods]
    return [
        Figure(draw_lines(lines, "many", "tasks", "accuracy", "w", log=True), "many"),
        Figure(draw_lines(lines[::4], "few", "tasks", "accuracy", "w"), "few"),
        Figure(draw_dots(dots, "dots", "bytes", "accuracy", "w"), "dots"),
        Figure(draw_bars(bars, "bars", "accuracy", "w"), "bars"),
    ]


@pytest.fixture
def page(write_run, tmp_path) -> Path:
    for method in ("dcl", "er", "ewc", "lwf", "a-method-of-a-long-name-without-a-break" * 3):
        write_run(f"runs/{method[:9]}", method)
    groups = group_runs(load_runs(tmp_path / "runs"))
    long = "statement " * 20 + "w" * 90
    verdicts = [Verdict(long, "0.95", "0.96", verdict, long) for verdict in VERDICTS]
    wide = Table("T", [f"column {k}" for k in range(20)], [["0.123456789"] * 20], "n" * 120)
    result = ExperimentResult(_figures(), [wide], (), verdicts, groups[0].runs, ["x" * 99], long)
    info = ExperimentInfo("fig4", "A title " * 9, "Figure 4", long, "everlearn " * 30, "an hour")
    curves = draw_curves(groups[:4])
    lead = Lead(curves.wide, curves.narrow, long, [Finding("0.999", long)] * 3)
    content = Reproduction("Report", long, "make " * 40, groups, [(info, result)], lead)
    return write_report(tmp_path / "out", content)


@pytest.mark.parametrize(("width", "theme"), VIEWS)
def test_the_report_fits_the_window_without_errors_or_requests(browser, page, width, theme):
    check(browser, page, width, theme)


@pytest.mark.parametrize(("width", "theme"), VIEWS)
def test_the_published_report_fits_the_window_without_errors_or_requests(browser, width, theme):
    check(browser, PUBLISHED, width, theme)


def resize(browser: Browser, width: int) -> None:
    browser.ask(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
        mobile=width < 500,
    )  # fmt: skip


def check(browser: Browser, page: Path, width: int, theme: str) -> None:
    resize(browser, width)
    media = [{"name": "prefers-color-scheme", "value": theme}]
    browser.ask("Emulation.setEmulatedMedia", features=media)
    browser.load(page.as_uri())
    browser.value("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert browser.value("innerWidth") == width
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value(SCROLLING) == [] or width > 1000
    assert browser.value("getComputedStyle(document.body).backgroundColor") == BACKGROUND[theme]
    assert browser.value("document.querySelectorAll('.copy button').length") > 0
    assert browser.value(CUT) == []
    for event in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
        assert browser.events_of(event) == []
    requested = {
        event["request"]["url"] for event in browser.events_of("Network.requestWillBeSent")
    }
    assert {url for url in requested if not url.startswith("data:")} == {page.as_uri()}


def test_no_source_or_link_leads_to_the_network(page):
    assert re.findall(r'(?:src|href)=["\']?(?:https?:)?//', page.read_text()) == []


def test_links_lead_to_their_section(browser, page):
    browser.load(page.as_uri() + "#fig4")
    top = browser.value("document.getElementById('fig4').getBoundingClientRect().top")
    assert 0 <= top < 80


@pytest.mark.parametrize(("width", "is_open"), [(1280, True), (390, False)])
def test_the_contents_are_folded_on_a_narrow_screen(browser, page, width, is_open):
    resize(browser, width)
    browser.load(page.as_uri())
    assert browser.value("document.querySelector('nav details').open") is is_open


def test_the_contents_stay_in_view_while_scrolling(browser, page):
    resize(browser, 1280)
    browser.load(page.as_uri())
    browser.value("scrollTo(0, 3000)")
    assert browser.value("document.querySelector('nav').getBoundingClientRect().top") == 0
