"""Texts of hosts: the URL they make, where they lead, or the error, in a Go client's words."""

from __future__ import annotations

import pytest

from refkubelet.host.addresses import (
    NetworkError,
    Target,
    UrlError,
    bad_header,
    check_host,
    host_port,
    in_ascii,
    is_possible_name,
    target_of,
    url_of,
)


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("10.0.0.1", "http://10.0.0.1:80/x?y"),
        ("fd00::1", "http://[fd00::1]:80/x?y"),
        ("fe80::1%lo", "http://[fe80::1%25lo]:80/x?y"),
        ("", "http://:80/x?y"),
        ("a;b,c", "http://a;b,c:80/x?y"),
        ("ß", "http://%C3%9F:80/x?y"),
        ("a\ud800", "http://a%EF%BF%BD:80/x?y"),
    ],
)
def test_a_host_makes_a_url_PROBE_066(host: str, wanted: str) -> None:
    assert url_of("http", host, 80, "/x?y") == wanted


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("[::1]", 'parse "http://[[::1]]:80/x": invalid IP-literal'),
        ("::1]", 'parse "http://[::1]]:80/x": invalid IP-literal'),
        ("[::1", 'parse "http://[[::1]:80/x": invalid IP-literal'),
        (
            "::g",
            'parse "http://[::g]:80/x": invalid host: ParseAddr("::g"): unable to parse IP',
        ),
        ("[", "parse \"http://[:80/x\": missing ']' in host"),
        ("[]", 'parse "http://[]:80/x": invalid IP-literal'),
        ("a b", 'parse "http://a%20b:80/x": invalid URL escape "%20"'),
        ("a\\b", 'parse "http://a%5Cb:80/x": invalid URL escape "%5C"'),
        ("a/b", 'parse "http://a%2Fb:80/x": invalid URL escape "%2F"'),
    ],
)
def test_a_host_that_makes_no_url_PROBE_066(host: str, why: str) -> None:
    with pytest.raises(UrlError) as refused:
        url_of("http", host, 80, "/x")
    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://10.0.0.1/x", Target("http", "10.0.0.1", 80)),
        ("https://10.0.0.1/x", Target("https", "10.0.0.1", 443)),
        ("https://[fd00::1]:99/x", Target("https", "fd00::1", 99)),
        ("http://[fe80::1%25lo]:9/", Target("http", "fe80::1%lo", 9)),
        ("http://B%C3%BCcher.example/", Target("http", "xn--bcher-kva.example", 80)),
        ("http://:9/", Target("http", "", 9)),
        ("http://h:0/", Target("http", "h", 0)),
    ],
)
def test_where_a_url_leads_PROBE_068(url: str, wanted: Target) -> None:
    assert target_of(url) == wanted


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://h/x", 'unsupported protocol scheme "ftp"'),
        ("/x", 'unsupported protocol scheme ""'),
        ("http://h:99999/", "dial tcp: address h:99999: invalid port"),
        ("http://h:a/", "dial tcp: address h:a: invalid port"),
        ("http://a..b:9/", "dial tcp: lookup a..b: no such host"),
        ("http://a%5Bb:9/", "dial tcp: address a[b:9: unexpected bracket in address"),
        ("http://a%5Db/", "dial tcp: address a]b:0: unexpected bracket in address"),
    ],
)
def test_a_url_that_leads_nowhere_PROBE_068(url: str, why: str) -> None:
    with pytest.raises(NetworkError) as refused:
        target_of(url)
    assert str(refused.value) == why


def test_a_url_that_cannot_be_read_leads_nowhere_PROBE_068() -> None:
    with pytest.raises(NetworkError, match=r"\S"):
        target_of("http://[::1/")


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        ("a", True),
        ("a.b.", True),
        ("_a-b.c1", True),
        ("1a", True),
        ("a" * 63, True),
        ("a" * 64, False),
        (".".join(["a" * 63] * 3 + ["a" * 62]), True),
        (".".join(["a" * 63] * 3 + ["a" * 63]), False),
        ("", False),
        (".", False),
        ("a..b", False),
        (".a", False),
        ("a..", False),
        ("-a", False),
        ("a.-b", False),
        ("a-.b", False),
        ("a b", False),
        ("ß", False),
        ("1.2.3", False),
        ("12", False),
    ],
)
def test_what_name_servers_may_be_asked_PROBE_068(name: str, possible: bool) -> None:
    assert is_possible_name(name) is possible


@pytest.mark.parametrize("host", ["", "10.0.0.1", "::1", "a.example", "1.2.3.a"])
def test_hosts_that_may_be_there_PROBE_068(host: str) -> None:
    check_host(host, 9)


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("127.1", "dial tcp: lookup 127.1: no such host"),
        ("0x7f.1", "dial tcp: lookup 0x7f.1: no such host"),
        ("0x", "dial tcp: lookup 0x: no such host"),
        ("a b", "dial tcp: lookup a b: no such host"),
        ("a[", "dial tcp: address a[:9: unexpected bracket in address"),
        ("::]", "dial tcp: address [::]]:9: unexpected bracket in address"),
    ],
)
def test_hosts_that_cannot_be_there_PROBE_068(host: str, why: str) -> None:
    with pytest.raises(NetworkError) as refused:
        check_host(host, 9)
    assert str(refused.value) == why


def test_hosts_beside_ports_and_in_ascii_PROBE_067() -> None:
    assert host_port("10.0.0.1", 80) == "10.0.0.1:80"
    assert host_port("fd00::1", 80) == "[fd00::1]:80"
    assert in_ascii("bücher.example") == "xn--bcher-kva.example"
    assert in_ascii("Plain.Example") == "Plain.Example"
    assert in_ascii("\ud800ß") == "\ud800ß"
    assert in_ascii("ß" * 64) == "ß" * 64


@pytest.mark.parametrize(
    ("headers", "bad"),
    [
        ((), ""),
        ((("A", "x\ty"),), ""),
        ((("A", "x"), ("B", "\n"), ("C", "\x00")), "B"),
        ((("A", "\x08"),), "A"),
        ((("A", "\x1f"),), "A"),
        ((("A", "\x7f"),), "A"),
    ],
)
def test_the_first_header_that_cannot_be_sent_PROBE_067(
    headers: tuple[tuple[str, str], ...], bad: str
) -> None:
    assert bad_header(headers) == bad
