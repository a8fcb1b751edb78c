"""The pages in a headless Chromium: drawn, filtered, zoomed, by mouse and by keyboard, and nothing
that axe-core complains of. Screenshots stay in build/screenshots."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from browser import Tab, browser, chromium
from golden_files import unpack
from places import ROOT
from result_files import case_line, crash_trace, head_line, trace_line, write_lines

from kubelet_conformance.report.commands import main
from kubelet_conformance.report.pages import show_page
from kubelet_conformance.results_schema import RunEnd
from kubelet_conformance.traces.entries import Entry, Trace

pytestmark = pytest.mark.slow
SHOTS: Final = ROOT / "build" / "screenshots"
HOST: Final = "document.querySelector('.timeline')"
MOMENTS: Final = "[...document.querySelectorAll('.timeline')].map((t) => t.dataset.at)"
DRAWN: Final = f"{HOST}.dataset.state === 'drawn' && {HOST}.querySelectorAll('.lanes .mark').length"


@pytest.fixture(autouse=True)
def there_is_one() -> None:
    chromium()
    SHOTS.mkdir(parents=True, exist_ok=True)


async def complaints(tab: Tab) -> list[str]:
    """What axe-core says against the page; [] also where axe-core is not there: then it is told."""
    places = [os.environ.get("AXE_CORE", ""), "node_modules/axe-core/axe.min.js"]
    found = [ROOT / place for place in places if place and (ROOT / place).is_file()]
    if not found:
        pytest.skip("no axe-core here: npm install axe-core, or AXE_CORE=.../axe.min.js")
    await tab.js(found[0].read_text() + "; true")
    told: list[dict[str, Any]] = await tab.js("axe.run().then((found) => found.violations)")
    return [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in told]


def a_run(file: Path) -> Path:
    failed: dict[str, Any] = {"expected": "a start", "seen": "none", "rules": ("BACK-003.2",)}
    return write_lines(
        file,
        head_line(),
        *(case_line("good"), case_line("other", area="probes", rules=("PROBE-019",))),
        case_line("bad", "failed", messages="expected: a start\nseen:     none", **failed),
        trace_line("bad", crash_trace(0.2, 10.0, 20.0, 40.0)),
        RunEnd(12.0, 1.0),
    )


async def test_a_report_in_the_browser(tmp_path: Path) -> None:
    main("report", [str(a_run(tmp_path / "run.json"))])
    async with browser(tmp_path / "profile") as tab:
        await tab.open(tmp_path / "run.html")
        assert await tab.js("document.getElementById('count').textContent") == "3 cases"
        assert await tab.js(f"{HOST}.dataset.state || ''") == ""  # not before it is opened
        await tab.screenshot(SHOTS / "report.png")
        await tab.js("document.getElementById('bad').open = true")
        await tab.js(f"{HOST}.scrollIntoView()")  # lanes out of sight are not drawn
        await tab.until(DRAWN)
        await tab.screenshot(SHOTS / "failed-case.png")
        await tab.js(
            "(() => { const rule = document.getElementById('choose').elements.rule;"
            " rule.value = 'PROBE-019';"
            " rule.dispatchEvent(new Event('input', {bubbles: true}));})()"
        )
        assert await tab.js("document.getElementById('count').textContent") == "1 case"
        assert await tab.js("document.getElementById('bad').hidden") is True
        await tab.js("document.getElementById('choose').reset(); filterCases()")
        assert tab.errors == []
        assert await complaints(tab) == []


async def window(tab: Tab) -> tuple[float, float]:
    first, last = (await tab.js(f"{HOST}.dataset.window")).split()
    return float(first), float(last)


async def test_a_timeline_filters_and_zooms(tmp_path: Path) -> None:
    main("show", [str(unpack("s02", tmp_path) / "api"), "-o", str(tmp_path / "s02.html")])
    async with browser(tmp_path / "profile") as tab:
        await tab.open(tmp_path / "s02.html")
        await tab.until(DRAWN)
        await tab.screenshot(SHOTS / "crash-loop.png")
        whole = await window(tab)
        everything = int(await tab.js(f"{HOST}.dataset.kept"))
        await tab.js("document.querySelector('.zoom button').click()")
        near = await window(tab)
        assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2)
        await tab.js("document.querySelector('.view').focus()")
        for key in ("-", "-", "ArrowRight", "ArrowRight"):
            await tab.key(key)
        assert await window(tab) == whole
        chosen = await tab.js("document.querySelector('.chosen').textContent")
        assert chosen.startswith("0.0")
        await tab.js(
            "(() => { const text = document.querySelector('.controls input');"
            " text.value = 'StartContainer'; text.dispatchEvent(new Event('input'));})()"
        )
        assert int(await tab.js(f"{HOST}.dataset.kept")) == 6
        marks = "[...document.querySelectorAll('.lanes .mark')].map((m) => m.dataset.what)"
        assert set(await tab.until(f"({marks}).length && {marks}")) == {"StartContainer"}
        await tab.js("document.querySelector('.entries').open = true")
        rows = await tab.until("document.querySelectorAll('.entries tbody tr').length")
        assert rows == 6 < everything
        await tab.send("Emulation.setEmulatedMedia", media="print")
        await tab.screenshot(SHOTS / "print.png")
        await tab.send("Emulation.setEmulatedMedia", media="screen")
        assert tab.errors == []
        assert await complaints(tab) == []


def a_long_trace(pods: int, each: int) -> bytes:
    """More than 50 MB of calls."""
    padding = {"request": {"text": "x" * 150}}
    start = Entry(0.0, "call", "StartContainer", container="main", detail=padding)
    entries = [
        msgspec.structs.replace(start, at_s=n * 0.5, pod=f"pod-{pod}", attempt=n)
        for n in range(each)
        for pod in range(pods)
    ]
    return msgspec.json.encode(Trace(tuple(entries), each * 0.5))


async def test_50_mb_of_traces_are_drawn_where_one_looks(tmp_path: Path) -> None:
    json = a_long_trace(200, 900)
    assert len(json) > 50_000_000
    (tmp_path / "long.html").write_text(show_page("long", json))
    async with browser(tmp_path / "profile") as tab:
        await tab.open(tmp_path / "long.html")
        await tab.until(DRAWN)
        assert await tab.js("document.querySelectorAll('.lane').length") == 201
        assert await tab.js(f"Number({HOST}.dataset.drawn)") < 60
        assert await tab.js("document.querySelectorAll('.lanes .mark').length") < 20_000
        before = await tab.js("performance.now()")
        await tab.js("document.querySelector('.zoom button').click()")
        assert await tab.js("performance.now()") - before < 10_000
        assert tab.errors == []


async def test_two_runs_side_by_side_in_the_browser(tmp_path: Path) -> None:
    good = write_lines(
        tmp_path / "a.json", head_line(), case_line("x"), trace_line("x", crash_trace(0.2, 10.0))
    )
    doubled = trace_line("x", crash_trace(0.2, 20.0))
    bad = write_lines(tmp_path / "b.json", head_line(), case_line("x"), doubled)
    assert main("diff", [str(good), str(bad), "--html", str(tmp_path / "d.html")]) == 1
    async with browser(tmp_path / "profile") as tab:
        await tab.open(tmp_path / "d.html")
        drawn = "document.querySelectorAll('.timeline[data-state=drawn] .lanes .mark').length > 4"
        await tab.until(drawn)
        await tab.screenshot(SHOTS / "diff.png")
        first = await tab.js("document.querySelector('tr.first').textContent")
        assert "20.0 s after the call before, in A 10.0 s" in first
        windows = "[...document.querySelectorAll('.timeline')].map((t) => t.dataset.window)"
        button = (
            "[...document.querySelectorAll('.zoom button')].find((b) => b.textContent === '{}')"
        )
        seen = []
        for name in ("all", "to the difference", "+"):
            await tab.js(f"{button.format(name)}.click()")
            of_a, of_b = await tab.js(windows)
            assert of_a == of_b  # one axis, of both
            seen.append([float(word) for word in of_a.split()])
        moments = [float(at_s) for at_s in await tab.js(MOMENTS)]
        assert seen[1][0] < min(moments) < max(moments) < seen[1][1]
        assert seen[2][1] - seen[2][0] < seen[1][1] - seen[1][0] <= seen[0][1] - seen[0][0]
        assert len(await tab.js("[...document.querySelectorAll('.controls')].map(() => 1)")) == 1
        assert tab.errors == []
        assert await complaints(tab) == []


async def test_calls_alike_unfold(tmp_path: Path) -> None:
    delays = (0.2, *[0.3] * 5)
    files = []
    for name, last_s in (("a", 10.0), ("b", 30.0)):
        trace = trace_line("x", crash_trace(*delays, last_s))
        lines = (head_line(), case_line("x"), trace)
        files.append(str(write_lines(tmp_path / f"{name}.json", *lines)))
    main("diff", [*files, "--html", str(tmp_path / "d.html")])
    shown = (
        "[...document.querySelectorAll('.inside > table tr')].filter((r) => r.offsetHeight).length"
    )
    async with browser(tmp_path / "profile") as tab:
        await tab.open(tmp_path / "d.html")
        before = await tab.js(shown)
        folded = int((await tab.js("document.querySelector('.unfold').textContent")).split()[0])
        await tab.js("document.querySelector('.unfold').click()")
        assert await tab.js(shown) == before + folded
        await tab.js("document.querySelector('.unfold').click()")
        assert await tab.js(shown) == before


@pytest.mark.parametrize("width", [1280, 430])
async def test_pages_in_the_dark_can_be_read_and_are_no_wider_than_a_phone(
    tmp_path: Path, width: int
) -> None:
    main("report", [str(a_run(tmp_path / "run.json"))])
    async with browser(tmp_path / "profile") as tab:
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        await tab.send("Emulation.setEmulatedMedia", features=[dark])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        await tab.send("Emulation.setDeviceMetricsOverride", **size)
        await tab.open(tmp_path / "run.html")
        await tab.js("document.getElementById('bad').open = true")
        await tab.js(f"{HOST}.scrollIntoView()")
        await tab.until(DRAWN)
        background = await tab.js("getComputedStyle(document.body).backgroundColor")
        assert max(int(part) for part in re.findall(r"\d+", background)[:3]) < 60
        assert await tab.js("document.documentElement.scrollWidth") <= width
        assert tab.errors == []
        assert await complaints(tab) == []
