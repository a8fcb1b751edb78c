"""httpGet as probes and lifecycle hooks do it: the URL, the headers, which redirects are followed.

Everything but `http_get` is pure; `http_get` carries the exchanges through a `Network`, so virtual
time and sockets follow the same rules. What must never happen here: a request to another host name
than the first one (PROBE-069).
Upstream: pkg/probe/http/http.go, request.go; the redirects are those of Go's net/http.Client.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from lightkube.models.core_v1 import HTTPGetAction

from refkubelet.host.addresses import NetworkError, bad_header, target_of, url_of
from refkubelet.host.network import PROBE_AGENT, HttpAnswer, HttpRequest, Network
from refkubelet.model.objects import Container
from refkubelet.model.pod import resolve_port

HOOK_AGENT: Final = "kube-lifecycle/1.36"  # LIFE-142
MAX_REQUESTS: Final = 10  # PROBE-069
FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})  # other 3xx are final answers
NEVER_SENT: Final = frozenset({"Content-Length", "Transfer-Encoding", "Trailer"})

_PLAIN_PATH: Final = re.compile(r"(?:[\w\-.~!$&'()*+,;=:@\[\]/]|%[0-9A-Fa-f]{2})*", re.ASCII)
_UNPARSABLE: Final = re.compile(r"[\x00-\x1f\x7f]|%(?![0-9A-Fa-f]{2})")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?=/)")


def http_request(
    action: HTTPGetAction, container: Container, pod_ip: str, agent: str = PROBE_AGENT
) -> HttpRequest:
    """The request of an httpGet action (PROBE-066, PROBE-067). Raises `PortError`,
    `UrlError`."""
    port = resolve_port(action.port, container)
    url = http_url(action.scheme or "HTTP", action.host or pod_ip, port, action.path or "/")
    headers = [(h.name, h.value) for h in action.httpHeaders or ()]
    return HttpRequest(url, http_headers(headers, agent))


def http_url(scheme: str, host: str, port: int, path: str) -> str:
    """`path` is a URL reference: its query is kept, its scheme and host are replaced. One that
    cannot be parsed is taken for a path as a whole (PROBE-066). Raises `UrlError` for a host that
    makes no URL.

    >>> http_url("HTTP", "10.0.0.1", 80, "healthz?full=1")
    'http://10.0.0.1:80/healthz?full=1'
    """
    return url_of(scheme.lower(), host, port, _reference(path))


def _reference(path: str) -> str:
    before, hash_sign, fragment = path.partition("#")
    if _UNPARSABLE.search(before.partition("?")[0] + fragment):
        return _rooted(quote(path, safe="$&+,/:;=@"))
    before = _SCHEME.sub("", before, count=1)
    before, question_mark, query = before.partition("?")
    if before.startswith("//") and not before.startswith("///"):
        _, slash, rest = before[2:].partition("/")
        before = slash + rest
    return _rooted(_escaped(before)) + question_mark + query + hash_sign + fragment


def _escaped(path: str) -> str:
    if _PLAIN_PATH.fullmatch(path):
        return path
    return quote(unquote_to_bytes(path), safe="$&+,/:;=@")


def _rooted(path: str) -> str:
    return path if not path or path.startswith("/") else f"/{path}"


def http_headers(
    given: Sequence[tuple[str, str]], agent: str = PROBE_AGENT
) -> tuple[tuple[str, str], ...]:
    """PROBE-067: the given ones under their canonical names, all of a repeated name; User-Agent
    and Accept unless given. User-Agent and Host count once, and given empty they are left out,
    as is an empty Accept."""
    names: dict[str, list[str]] = {}
    for name, value in given:
        names.setdefault(_canonical(name), []).append(value)
    names.setdefault("User-Agent", [agent])
    names.setdefault("Accept", ["*/*"])
    if "close" not in names.setdefault("Connection", []):
        names["Connection"].append("close")
    for once in ("User-Agent", "Host"):
        names[once] = [value for value in names.get(once, [])[:1] if value]
    if not names["Accept"][0]:
        del names["Accept"]
    sendable = ((name, values) for name, values in names.items() if name not in NEVER_SENT)
    return tuple((name, value) for name, values in sendable for value in values)


def _canonical(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))


def next_request(
    first: HttpRequest, last: HttpRequest, answer: HttpAnswer, made: int
) -> HttpRequest | None:
    """What follows an answer: another request, or None when the answer is final (PROBE-069).

    `made`: how many requests there were. A given Host stays while targets are relative; each
    request names the one before as its Referer. Raises `NetworkError` after ten requests.
    """
    if answer.status not in FOLLOWED or not answer.location:
        return None
    try:
        url = urljoin(last.url, answer.location)
        leaves = urlsplit(url).hostname != urlsplit(first.url).hostname
    except ValueError as error:
        quoted = json.dumps(answer.location, ensure_ascii=False)
        text = f"failed to parse Location header {quoted}: {error}"
        raise NetworkError(f'Get "{last.url}": {text}') from None
    if leaves:
        return None
    if made >= MAX_REQUESTS:
        raise NetworkError(f'Get "{answer.location}": stopped after {MAX_REQUESTS} redirects')
    dropped = {"Referer"} if urlsplit(answer.location).scheme == "" else {"Referer", "Host"}
    headers = [(name, value) for name, value in first.headers if name not in dropped]
    return HttpRequest(url, (*headers, *_referer(first, last.url, url)))


def _referer(first: HttpRequest, last_url: str, url: str) -> list[tuple[str, str]]:
    referers = [(name, value) for name, value in first.headers if name == "Referer"]
    if urlsplit(last_url).scheme == "https" and urlsplit(url).scheme == "http":
        return referers
    return referers[:1] or [("Referer", last_url)]


async def http_get(network: Network, first: HttpRequest, timeout_s: float | None) -> HttpAnswer:
    """The final answer. `timeout_s` covers all requests together; None: no limit of our own.
    Raises `NetworkError` with the words `Get "<url>": <why>`."""
    loop = asyncio.get_running_loop()
    end_s = None if timeout_s is None else loop.time() + timeout_s
    request, count = first, 1
    while True:
        left_s = None if end_s is None else max(0.0, end_s - loop.time())
        try:
            _check(request)
            answer = await network.http_get(request, left_s)
        except NetworkError as error:
            raise NetworkError(f'Get "{request.url}": {error}') from None
        following = next_request(first, request, answer, count)
        if following is None:
            return answer
        request, count = following, count + 1


def _check(request: HttpRequest) -> None:
    """What can be told without a connection. Raises `NetworkError`."""
    name = bad_header(request.headers)
    if name:
        raise NetworkError(f'net/http: invalid header field value for "{name}"')
    target_of(request.url)
