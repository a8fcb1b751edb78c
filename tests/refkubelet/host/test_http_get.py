"""httpGet: URLs, headers and redirects as tables; the loop over the exchanges in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import HTTPGetAction, HTTPHeader

from refkubelet.host.http_get import (
    FOLLOWED,
    HOOK_AGENT,
    http_get,
    http_headers,
    http_request,
    http_url,
    next_request,
)
from refkubelet.host.network import HttpAnswer, HttpRequest, NetworkError
from refkubelet.model.objects import Container

AGENT, ACCEPT = ("User-Agent", "kube-probe/1.36"), ("Accept", "*/*")
CLOSE = ("Connection", "close")
FIRST = HttpRequest("http://10.0.0.1:80/a", (("Host", "shop"), ("X", "1")))


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/", "/"),
        ("", ""),
        ("healthz", "/healthz"),
        ("healthz?full=1", "/healthz?full=1"),
        ("?full=1", "?full=1"),
        ("/x?", "/x?"),
        ("/a?b?c", "/a?b?c"),
        ("/x#part", "/x#part"),
        ("/a b", "/a%20b"),
        ("/a%20b", "/a%20b"),
        ("/a%2Fb", "/a%2Fb"),
        ("/(x)'!*", "/(x)'!*"),
        ("/ü", "/%C3%BC"),
        ("/%zz?a=1", "/%25zz%3Fa=1"),  # cannot be parsed: all of it is the path
        ("/\x01", "/%01"),
        ("//other/x", "/x"),
        ("///x", "///x"),
        ("http://other:81/x?y", "/x?y"),
        ("http:/x", "/x"),
    ],
)
def test_the_path_is_a_url_reference_PROBE_066(path: str, wanted: str) -> None:
    assert http_url("HTTP", "10.0.0.1", 80, path) == f"http://10.0.0.1:80{wanted}"


def test_scheme_and_ipv6_in_urls_PROBE_066() -> None:
    assert http_url("HTTPS", "fd00::1", 443, "/x") == "https://[fd00::1]:443/x"


@given(st.text(max_size=20))
def test_no_path_leads_to_another_host_PROBE_066(path: str) -> None:
    url = http_url("HTTP", "10.0.0.1", 80, path)
    assert url.startswith("http://10.0.0.1:80")
    assert url.removeprefix("http://10.0.0.1:80")[:1] in ("", "/", "?", "#")


@pytest.mark.parametrize(
    ("given_headers", "wanted"),
    [
        ([], [AGENT, ACCEPT, CLOSE]),
        ([("accept", ""), ("X", "1"), ("X", "2")], [("X", "1"), ("X", "2"), AGENT, CLOSE]),
        ([("user-agent", "me")], [("User-Agent", "me"), ACCEPT, CLOSE]),
        ([("user-agent", "")], [ACCEPT, CLOSE]),
        ([("Host", "a"), ("host", "b")], [("Host", "a"), AGENT, ACCEPT, CLOSE]),
        ([("Host", "")], [AGENT, ACCEPT, CLOSE]),
        ([("x-my-HEADER", "1")], [("X-My-Header", "1"), AGENT, ACCEPT, CLOSE]),
        ([("content-length", "5")], [AGENT, ACCEPT, CLOSE]),
        ([("connection", "keep-alive")], [("Connection", "keep-alive"), CLOSE, AGENT, ACCEPT]),
        ([("connection", "close")], [CLOSE, AGENT, ACCEPT]),
    ],
)
def test_headers_PROBE_067(given_headers: Any, wanted: Any) -> None:
    assert list(http_headers(given_headers)) == wanted


def test_the_request_of_an_action_PROBE_066_PROBE_067() -> None:
    container = Container(name="c")
    action = HTTPGetAction(port=8080, httpHeaders=[HTTPHeader("X", "1")])
    request = http_request(action, container, "10.0.0.9", HOOK_AGENT)
    assert request.url == "http://10.0.0.9:8080/"
    assert ("User-Agent", "kube-lifecycle/1.36") in request.headers
    named = HTTPGetAction(port=8080, host="db", scheme="HTTPS", path="/x")
    assert http_request(named, container, "10.0.0.9").url == "https://db:8080/x"


@pytest.mark.parametrize("status", [200, 204, 300, 304, 305, 404, 500])
def test_other_answers_are_final_PROBE_069(status: int) -> None:
    assert next_request(FIRST, FIRST, HttpAnswer(status, "/b"), 1) is None


@pytest.mark.parametrize("status", sorted(FOLLOWED))
def test_redirects_stay_on_the_host_name_PROBE_069(status: int) -> None:
    def follow(location: str) -> HttpRequest | None:
        return next_request(FIRST, FIRST, HttpAnswer(status, location), 1)

    target = follow("/b?c=1")
    assert target is not None
    assert target.url == "http://10.0.0.1:80/b?c=1"
    assert target.headers == (("Host", "shop"), ("X", "1"), ("Referer", FIRST.url))
    other_port = follow("https://10.0.0.1:443/b")
    assert other_port is not None
    assert other_port.headers == (("X", "1"), ("Referer", FIRST.url))  # the Host is gone
    assert follow("http://10.0.0.2/b") is None
    assert follow("") is None


def test_redirects_end_after_ten_requests_PROBE_069() -> None:
    assert next_request(FIRST, FIRST, HttpAnswer(302, "/b"), 9) is not None
    with pytest.raises(NetworkError) as error:
        next_request(FIRST, FIRST, HttpAnswer(302, "/b"), 10)
    assert str(error.value) == 'Get "/b": stopped after 10 redirects'
    with pytest.raises(NetworkError) as error:
        next_request(FIRST, FIRST, HttpAnswer(302, "http://[x"), 1)
    text = 'Get "http://10.0.0.1:80/a": failed to parse Location header "http://[x"'
    assert str(error.value).startswith(text)


def test_no_referer_from_https_to_http_PROBE_069() -> None:
    last = HttpRequest("https://10.0.0.1/a", FIRST.headers)
    target = next_request(FIRST, last, HttpAnswer(302, "http://10.0.0.1/b"), 1)
    assert target is not None
    assert target.headers == (("X", "1"),)


@given(st.text(max_size=20))
def test_no_redirect_leaves_the_host_PROBE_069(location: str) -> None:
    try:
        target = next_request(FIRST, FIRST, HttpAnswer(302, location), 1)
    except NetworkError:
        return
    assert target is None or "//10.0.0.1" in target.url


class Answers:
    """A network of scripted answers; each takes a second."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, float | None]] = []

    async def http_get(self, request: HttpRequest, timeout_s: float | None) -> HttpAnswer:
        self.asked.append((request.url, timeout_s))
        await asyncio.sleep(1)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    async def tcp_connect(self, host: str, port: int, timeout_s: float) -> None:
        raise AssertionError

    async def grpc_health(self, address: str, service: str, timeout_s: float) -> str:
        raise AssertionError


@pytest.mark.virtual_time
async def test_the_time_limit_covers_all_requests_PROBE_066() -> None:
    network = Answers(HttpAnswer(302, "/b"), HttpAnswer(302, "c"), HttpAnswer(200, body="ok"))
    assert (await http_get(network, FIRST, 5)).body == "ok"
    base = "http://10.0.0.1:80"
    assert network.asked == [(f"{base}/a", 5), (f"{base}/b", 4), (f"{base}/c", 3)]


@pytest.mark.virtual_time
async def test_errors_name_the_url_PROBE_068() -> None:
    network = Answers(HttpAnswer(302, "/b"), NetworkError("EOF"))
    with pytest.raises(NetworkError) as error:
        await http_get(network, FIRST, None)
    assert str(error.value) == 'Get "http://10.0.0.1:80/b": EOF'
