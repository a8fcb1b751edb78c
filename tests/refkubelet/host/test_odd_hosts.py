"""Hosts and headers that are nonsense: each fails in its own way, and with no other error."""

from __future__ import annotations

from collections import Counter

import pytest
from lightkube.models.core_v1 import Container, HTTPGetAction

from refkubelet.host.addresses import NetworkError, UrlError, check_host, target_of
from refkubelet.host.http_get import http_get, http_request
from refkubelet.host.network import HttpRequest, SocketNetwork, sent_headers
from simclock import Rng

ALPHABET = 'a.-_:[]%@/ 09\\"<\n\x00éß。\u200d\ud800'
NO_URL = ["127.0.0.1:99", "[::1]", "a b", "a/b", "u@h", "a?b", "a#b", "::g", "[", "[]", ":", "a{b}"]
NOBODY = [
    *("a..b", "a" * 64, ".a", "-a.invalid", "a-.invalid", "127.1", "256.1.1.1", "2130706433"),
    *("0x7f000001", "<a>", "a%b", "\u200d", "."),
]


def request(host: str) -> HttpRequest:
    action = HTTPGetAction(port=9, host=host, path="/x")
    return http_request(action, Container(name="main"), "10.0.0.1")


@pytest.mark.parametrize("host", NO_URL)
def test_a_host_that_makes_no_url_is_refused_PROBE_066(host: str) -> None:
    with pytest.raises(UrlError, match=r'^parse "http://'):
        request(host)


@pytest.mark.parametrize("host", NOBODY)
async def test_a_name_that_cannot_be_is_not_looked_up_PROBE_068(host: str) -> None:
    text = r"^Get \"http://.*:9/x\": dial tcp: lookup .*: no such host$"
    with pytest.raises(NetworkError, match=text):
        await http_get(SocketNetwork(), request(host), 1)


@pytest.mark.parametrize("host", [*NOBODY, *NO_URL, "bücher.invalid"])
async def test_a_tcp_probe_of_an_odd_host_fails_PROBE_071(host: str) -> None:
    with pytest.raises(NetworkError, match=r"^dial tcp"):
        await SocketNetwork().tcp_connect(host, 9, 1)


@pytest.mark.parametrize(
    ("host", "header"),
    [
        ("::1", "[::1]:9"),
        ("fe80::1%lo", "[fe80::1]:9"),  # the zone is for this node only
        ("bücher.example", "xn--bcher-kva.example:9"),
        ("ß.example", "xn--zca.example:9"),
    ],
)
def test_the_host_header_of_other_alphabets_and_addresses_PROBE_067(host: str, header: str) -> None:
    assert sent_headers(request(host))[0] == ("Host", header)


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "\x00", "\x7f"])
async def test_a_header_that_cannot_be_sent_PROBE_067(value: str) -> None:
    odd = HttpRequest("http://127.0.0.1:9/", (("X-A", value),))
    with pytest.raises(NetworkError, match='net/http: invalid header field value for "X-A"'):
        await http_get(SocketNetwork(), odd, 1)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("ftp://h/x", 'unsupported protocol scheme "ftp"'),
        ("http://h:99999/", "dial tcp: address h:99999: invalid port"),
        ("http://[h/", "Invalid IPv6 URL"),
    ],
)
def test_where_a_redirect_cannot_lead_PROBE_069(url: str, text: str) -> None:
    with pytest.raises(NetworkError, match=text):
        target_of(url)


def test_whatever_the_host_is_the_error_is_one_that_is_known_PROBE_066() -> None:
    dice = Rng(1).stream("hosts")
    refused: Counter[type[Exception]] = Counter()
    for _ in range(20_000):
        host = "".join(dice.choices(ALPHABET, k=dice.randint(1, 9)))
        try:
            sent_headers(request(host))
            check_host(host, 9)
        except (NetworkError, UrlError) as error:
            refused[type(error)] += 1
    assert refused[UrlError] > 10_000
    assert refused[NetworkError] > 1_000
