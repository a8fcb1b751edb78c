"""Files and directories below /var/log, and nothing else (/logs/).

The path is walked part by part; links are followed as long as they stay below. What must never
happen here: a file outside is shown, a FIFO is waited for, a big file is held in memory.
Upstream: pkg/kubelet/kubelet.go: ServeLogs, which is Go's http.FileServer, and follows every link.
"""

from __future__ import annotations

import asyncio
import html
import os
import stat
from collections.abc import AsyncIterator, Generator
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from refkubelet.host.untrusted_files import is_directory, listed, open_below
from refkubelet.server.common.exchange import Answer, Request, error
from refkubelet.server.common.host import ServerHost
from refkubelet.server.common.routes import NO_PAGE, Route
from simclock import aside

BLOCK_BYTES: Final = 64 * 1024
BINARY: Final = "application/octet-stream"
PLAIN_TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"


class SystemLogs(Struct, frozen=True):
    """The handler of /logs/."""

    host: ServerHost

    async def answer(self, request: Request, route: Route) -> Answer:
        """A file, or the list of a directory; 403 and 404 as Go's file server says."""
        path = route.parts["path"]
        try:
            file = open_below(self.host.files.system_logs, path)
        except PermissionError:
            return error(403, "403 Forbidden")
        except (OSError, ValueError):
            return error(404, NO_PAGE)
        try:
            if stat.S_ISDIR(os.fstat(file).st_mode):
                if not request.path.endswith("/"):
                    name = quote(request.path.rsplit("/", 1)[-1])
                    return Answer(status=301, headers={"Location": f"{name}/"})
                return await _list(path, file)
            chunks = _content(file, os.fstat(file).st_size)
            kind = _kind(os.pread(file, 512, 0))
            file = -1
            return Answer(chunks=chunks, content_type=kind)
        finally:
            if file >= 0:
                os.close(file)


async def _list(path: str, directory: int) -> Answer:
    """The page of the open directory, or 503 while nothing answers there."""
    rows = _rows(os.dup(directory))
    next(rows)  # from now on it closes the descriptor, whatever becomes of it
    try:
        return _page(await aside(f"the list of {path}", rows))
    except OSError as failure:
        return error(503, f"the directory cannot be read now: {failure.strerror}")


def _rows(directory: int) -> Generator[None, None, list[str]]:
    """A link for each entry of the open directory, which is closed in the end, once the first step
    is made; directories with a slash, an entry at each step after the first."""
    rows = []
    try:
        yield
        for name in listed(directory):
            rows.append(_row(name + ("/" if is_directory(name, directory) else "")))
            yield
    finally:
        os.close(directory)
    return rows


def _row(shown: str) -> str:
    printable = shown.encode(errors="surrogateescape")
    text = printable.decode(errors="replace")
    address = quote(printable if ":" not in shown.split("/")[0] else b"./" + printable)
    return f'<a href="{html.escape(address)}">{html.escape(text)}</a>\n'


def _page(rows: list[str]) -> Answer:
    head = '<!doctype html>\n<meta name="viewport" content="width=device-width">\n'
    return Answer(body=f"{head}<pre>\n{''.join(rows)}</pre>\n".encode(), content_type=HTML)


def _kind(beginning: bytes) -> str:
    return BINARY if b"\0" in beginning else PLAIN_TEXT


async def _content(file: int, size: int) -> AsyncIterator[bytes]:
    """The file as long as it was when it was opened."""
    try:
        while size > 0 and (block := os.read(file, min(BLOCK_BYTES, size))):
            size -= len(block)
            await asyncio.sleep(0)  # others have their turn, however big the file is
            yield block
    finally:
        os.close(file)
