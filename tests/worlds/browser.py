"""A headless Chromium that tests look at pages with, over the DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--remote-debugging-port=0", "--window-size=1280,900"),
)
START_S = 120.0
ANSWER_S = 120.0


def chromium() -> str:
    """The program; skips the test where there is none."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium here")
    return found


def problems(method: str | None, told: dict[str, Any]) -> list[str]:
    """The error that a message of the browser tells of, if it does."""
    loud = ("error", "warning", "assert")
    match method:
        case "Runtime.exceptionThrown":
            return [json.dumps(told["exceptionDetails"])[:500]]
        case "Runtime.consoleAPICalled" if told["type"] in loud:
            return [json.dumps(told["args"])[:500]]
        case "Log.entryAdded" if told["entry"]["level"] in loud:
            return [str(told["entry"]["text"])]
    return []


class Tab:
    """One page. `errors`: what its console said as errors, and exceptions of its scripts."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self.errors: list[str] = []
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if waiting := self._answers.pop(told.get("id", 0), None):
                waiting.set_result(told)
            elif told.get("method") == "Page.loadEventFired":
                self._loaded.set()
            else:
                self.errors += problems(told.get("method"), told.get("params") or {})

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol. Raises RuntimeError."""
        self._number += 1
        waiting = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        answer = await asyncio.wait_for(waiting, ANSWER_S)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    async def open(self, page: Path | str) -> None:
        """Load a file or a URL, and wait until it is there."""
        for domain in ("Page", "Runtime", "Log"):
            await self.send(f"{domain}.enable")
        self._loaded.clear()
        url = page if isinstance(page, str) else page.absolute().as_uri()
        await self.send("Page.navigate", url=url)
        await asyncio.wait_for(self._loaded.wait(), ANSWER_S)

    async def js(self, expression: str) -> Any:
        """What an expression is in the page; a promise is waited for. Raises RuntimeError."""
        answer = await self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {json.dumps(answer['exceptionDetails'])[:800]}")
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until the expression is true in the page; returns its value."""
        within = (
            "new Promise((done, fail) => { const from = Date.now(); const look = () => {"
            f" const found = ({expression}); if (found) done(found);"
            " else if (Date.now() - from > 60000) fail(new Error('not within a minute'));"
            " else setTimeout(look, 50); }; look(); })"
        )
        return await self.js(within)

    async def key(self, key: str) -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, **text)

    async def screenshot(self, file: Path) -> None:
        """Keep how it looks, as a PNG."""
        shot = await self.send("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shot["data"]))

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._socket.close()


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Tab]:
    """A tab of a browser of its own, whose profile is in that new directory."""
    program = await asyncio.create_subprocess_exec(
        *(chromium(), *FLAGS, f"--user-data-dir={profile}", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        port = await _port(profile / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                tabs = await answer.json()
            address = next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as socket:
                tab = Tab(socket)
                try:
                    yield tab
                finally:
                    await tab.close()
    finally:
        program.terminate()
        await program.wait()


async def _port(file: Path) -> int:
    """The port that the browser wrote down once it listens."""
    for _ in range(int(START_S / 0.1)):
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        await asyncio.sleep(0.1)
    raise TimeoutError("Chromium did not start")
