"""The pictures of the pages: `python tools/docs/screenshots.py [NAME ...]`, after `tox -e docs`.

A report, two runs side by side, a timeline and the site's first page: light and dark in
docs/images, narrow in build/screenshots, to be looked at. Wants Chromium and pngquant, which Debian
has, and what tests want.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/worlds", "tests/mutants", "tests")]

from aiohttp import web  # noqa: E402
from browser import Tab, browser  # noqa: E402
from golden_files import unpack  # noqa: E402
from planted_run import planted_run  # noqa: E402

from kubelet_conformance.report.commands import main as report  # noqa: E402

IMAGES: Final = ROOT / "docs" / "images"
NARROW_ONES: Final = ROOT / "build" / "screenshots"
MUTANT: Final = "backoff/first-delay-doubled"
DRAWN: Final = (
    "[...document.querySelectorAll('.timeline')].some((t) => t.dataset.state === 'drawn')"
)
PALETTE: Final = (
    "document.body.dataset.mdColorScheme === "
    "(matchMedia('(prefers-color-scheme: dark)').matches ? 'slate' : 'default')"
)
NARROW: Final = 430
WIDE: Final = 1280


@dataclass(frozen=True, slots=True)
class Shot:
    """A page, what is done on it before, and how much of it is shown."""

    page: Path | str
    height: int
    before: str = ""
    """JavaScript; it waits for what it starts."""
    until: str = "true"


def shots(folder: Path, site: str) -> Mapping[str, Shot]:
    """The pictures by name; makes the pages of runs in `folder`. `site`: where the site is."""
    good, bad = folder / "good.json", folder / "new.json"
    cases = ("--rule", "BACK-001")
    planted_run("", *cases, "--results", str(good))
    planted_run(MUTANT, *cases, "--results", str(bad))
    report("report", [str(bad), "-o", str(folder / "report.html")])
    report("diff", [str(good), str(bad), "--html", str(folder / "two-runs.html")])
    recorded = folder / "kubelet-1.36" / "crash-loop"  # two words that are its title
    shutil.copytree(unpack("s02", folder) / "api", recorded)
    report("show", [str(recorded), "-o", str(folder / "timeline.html")])
    opened = "document.getElementById('backoff-series').open = true"
    return {
        "first-page": Shot(f"{site}/index.html", 1250, until=PALETTE),
        "report": Shot(folder / "report.html", 1780, opened, DRAWN),
        "two-runs": Shot(folder / "two-runs.html", 900, until=DRAWN),
        "timeline": Shot(folder / "timeline.html", 530, until=DRAWN),
    }


async def take(tab: Tab, shot: Shot, file: Path, *, width: int, scheme: str) -> None:
    """Keep how the page looks; a narrow one twice as high."""
    await tab.send(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    height = shot.height if width == WIDE else 2 * shot.height
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    await tab.send("Emulation.setDeviceMetricsOverride", **size)
    await tab.send("Emulation.setScrollbarsHidden", hidden=True)
    await tab.open(shot.page)
    if shot.before:
        await tab.js(shot.before)
    await tab.until(shot.until)
    await tab.js("new Promise((done) => setTimeout(done, 500))")  # what is lazy is drawn
    await tab.screenshot(file)
    words = ("--force", "--ext", ".png", "--speed", "1", "64", file)
    smaller = await asyncio.create_subprocess_exec("pngquant", *words)
    if await smaller.wait():
        raise OSError(f"pngquant ended with {smaller.returncode}: {file}")


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """The URL of a server of these files, as long as the block lasts."""
    app = web.Application()
    app.router.add_static("/", folder)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def main(names: list[str]) -> int:
    for folder in (IMAGES, NARROW_ONES):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        profile = Path(directory) / "profile"
        async with served(ROOT / "site") as site, browser(profile) as tab:
            wanted = shots(Path(directory), site)
            for name, scheme in product(names or wanted, ("light", "dark")):
                for width, kind in ((WIDE, ""), (NARROW, "-narrow")):
                    file = (NARROW_ONES if kind else IMAGES) / f"{name}-{scheme}{kind}.png"
                    await take(tab, wanted[name], file, width=width, scheme=scheme)
                    print(f"{file.relative_to(ROOT)}  {file.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
