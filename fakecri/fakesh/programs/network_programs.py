"""Programs that look at the network: `wget`, `nc`, `nslookup`, `ping`, `netstat`.

They reach what containers serve, of any pod of the fake, and nothing of the machine it runs on; so
they work in virtual time, too. Names are those of /etc/hosts.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from fakecri.fakesh.invocations.invocation import USAGE, Invocation, Program
from fakecri.fakesh.programs.file_programs import operands
from fakecri.fakesh.shell.redirections import opened_for_writing

_HTTP, _HTTPS = 80, 443
_MOST_REDIRECTS: Final = 5
_TIMEOUT_S: Final = 900.0


class Page(Protocol):
    """What answers an HTTP request."""

    @property
    def status(self) -> int: ...
    @property
    def body(self) -> str: ...
    @property
    def location(self) -> str:
        """Where to look instead; "": nowhere."""


class Network(Protocol):
    """What the programs reach. `http` and `connect` raise ConnectionRefusedError where nothing
    listens."""

    async def http(
        self, host: str, port: int, path: str, headers: tuple[tuple[str, str], ...], *, tls: bool
    ) -> Page:
        """Send a GET. Raises ConnectionAbortedError where another protocol is spoken, and other
        ConnectionErrors."""

    def connect(self, host: str, port: int) -> str:
        """Open a connection and close it."""

    def is_alive(self, address: str) -> bool:
        """Whether somebody has this address."""

    def open_at(self, address: str) -> Iterable[int]:
        """The ports on which the pod with this address listens."""


class NetworkPrograms(Struct, frozen=True):
    """The programs, in this network."""

    network: Network

    def by_name(self) -> Mapping[str, Program]:
        return {
            "nc": self._nc,
            "netstat": self._netstat,
            "nslookup": self._nslookup,
            "ping": self._ping,
            "wget": self._wget,
        }

    async def _wget(self, run: Invocation) -> int:
        """`wget [-q] [-O FILE] [-T SECONDS] [--spider] URL`."""
        quiet, spider, target, limit_s, urls = False, False, "", _TIMEOUT_S, list[str]()
        words = iter(_apart(run.command[1:], "OTUY"))
        for word in words:
            if word == "-O":
                target = next(words, "")
            elif word in ("-T", "--timeout"):
                limit_s = _seconds(next(words, ""))
            elif word == "--spider":
                spider = True
            elif not word.startswith("-"):
                urls.append(word)
            quiet = quiet or word in ("-q", "--quiet")
        if len(urls) != 1:
            await run.err("wget: the fake knows only: wget [-q] [-O FILE] [-T SECONDS] URL\n")
            return USAGE
        try:
            answer = await asyncio.wait_for(self._fetch(run, urls[0], quiet=quiet), limit_s)
        except TimeoutError:
            answer = "download timed out"
        except OSError as error:
            answer = str(error)
        if isinstance(answer, str):
            await run.err(f"wget: {answer}\n")
            return 1
        if not spider:
            name = target or urlsplit(urls[0]).path.rpartition("/")[2] or "index.html"
            output = run.stdout if name == "-" else opened_for_writing(run, name, append=False)
            await output.write(answer.body.encode())
        return 0

    async def _fetch(self, run: Invocation, url: str, *, quiet: bool) -> Page | str:
        """The answer, or what is wrong."""
        for _ in range(_MOST_REDIRECTS):
            parts = urlsplit(url if "://" in url else f"http://{url}")
            tls = parts.scheme == "https"
            host, port = parts.hostname or "", parts.port or (_HTTPS if tls else _HTTP)
            address = self._resolve(run, host)
            if not address:
                return f"bad address '{host}'"
            if not quiet:
                await run.err(f"Connecting to {host} ({address}:{port})\n")
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = (("Host", parts.netloc), ("User-Agent", "Wget"))
            try:
                answer = await self.network.http(address, port, path, headers, tls=tls)
            except ConnectionRefusedError:
                return f"can't connect to remote host ({address}): Connection refused"
            except ConnectionAbortedError:
                return "error getting response"
            if not answer.location:
                break
            url = urljoin(f"{parts.scheme}://{parts.netloc}{path}", answer.location)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            return f"server returned error: HTTP/1.1 {answer.status} {_phrase(answer.status)}"
        return answer

    async def _nc(self, run: Invocation) -> int:
        """`nc -z HOST PORT`: whether something listens."""
        words = list(_apart(run.command[1:], "w"))
        letters = {letter for word in words if word.startswith("-") for letter in word[1:]}
        plain = [w for i, w in enumerate(words) if not w.startswith("-") and words[i - 1] != "-w"]
        if "z" not in letters or len(plain) != 2 or not plain[1].isdecimal():
            await run.err("nc: the fake knows only: nc -z [-v] [-w SECONDS] HOST PORT\n")
            return USAGE
        address = self._resolve(run, plain[0])
        if not address:
            await run.err(f"nc: bad address '{plain[0]}'\n")
            return 1
        where = f"{plain[0]} ({address}:{plain[1]})"
        try:
            self.network.connect(address, int(plain[1][:6]))
        except ConnectionRefusedError:
            if "v" in letters:
                await run.err(f"nc: {where}: Connection refused\n")
            return 1
        if "v" in letters:
            await run.err(f"{where} open\n")
        return 0

    async def _nslookup(self, run: Invocation) -> int:
        names = operands(run)[1]
        if not names:
            await run.err("nslookup: a name is missing\n")
            return USAGE
        servers = [words[1] for words in _rows(run, "/etc/resolv.conf") if words[0] == "nameserver"]
        server = servers[0] if servers else "127.0.0.1"
        await run.out(f"Server:\t\t{server}\nAddress:\t{server}:53\n\n")
        address = self._resolve(run, names[0])
        if not address:
            await run.out(f"** server can't find {names[0]}: NXDOMAIN\n\n")
            return 1
        await run.out(f"Name:\t{names[0]}\nAddress: {address}\n\n")
        return 0

    async def _ping(self, run: Invocation) -> int:
        """`ping [-c COUNT] [-w SECONDS] [-q] HOST`."""
        words = list(_apart(run.command[1:], "cwWis"))
        count = _option(words, "-c")
        hosts = [
            w for i, w in enumerate(words) if not w.startswith("-") and words[i - 1][:1] != "-"
        ]
        address = self._resolve(run, hosts[0]) if hosts else ""
        if not address:
            await run.err(f"ping: bad address '{hosts[0] if hosts else ''}'\n")
            return 1
        await run.out(f"PING {hosts[0]} ({address}): 56 data bytes\n")
        if not run.security.may("socket", "NET_RAW"):
            await run.err("ping: permission denied (are you root?)\n")
            return 1
        alive = self.network.is_alive(address)
        sent = 0
        while count is None or sent < count:
            if alive:
                await run.out(f"64 bytes from {address}: seq={sent} ttl=64 time=0.050 ms\n")
            sent += 1
            await asyncio.sleep(1)
        lost = 0 if alive else 100
        await run.out(
            f"\n--- {hosts[0]} ping statistics ---\n{sent} packets transmitted, "
            f"{sent if alive else 0} packets received, {lost}% packet loss\n"
        )
        return int(not alive)

    async def _netstat(self, run: Invocation) -> int:
        """The ports of its pod that are listened on, whatever the options say."""
        await run.out("Active Internet connections (only servers)\n")
        await run.out(
            "Proto Recv-Q Send-Q Local Address           Foreign Address         State       \n"
        )
        for port in self.network.open_at(run.address):
            place = f"0.0.0.0:{port}"
            await run.out(f"tcp        0      0 {place:<23} 0.0.0.0:*               LISTEN\n")
        return 0

    def _resolve(self, run: Invocation, host: str) -> str:
        """The address of a name, as this pod sees it; "": there is none."""
        for words in _rows(run, "/etc/hosts"):
            if host in words[1:]:
                host = words[0]
                break
        try:
            found = ipaddress.ip_address(host)
        except ValueError:
            return ""
        return run.address if found.is_loopback and run.address else host


def _rows(run: Invocation, path: str) -> Iterator[list[str]]:
    """The words of the lines of a file that have at least two."""
    try:
        text = run.files.read(path).decode("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1:
            yield words


def _apart(words: tuple[str, ...], with_value: str) -> Iterator[str]:
    """Options and their values as words of their own: `-qO-`, `-T5`, `--timeout=5`."""
    for word in words:
        if word.startswith("--"):
            name, sign, value = word.partition("=")
            yield name
            if sign:
                yield value
            continue
        while word.startswith("-") and len(word) > 2:
            yield word[:2]
            word = word[2:] if word[1] in with_value else f"-{word[2:]}"
            if not word.startswith("-"):
                break
        yield word


def _option(words: list[str], name: str) -> int | None:
    at = words.index(name) + 1 if name in words else len(words)
    text = words[at] if at < len(words) else ""
    return int(text[:9]) if text.isdecimal() else None


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return _TIMEOUT_S


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
