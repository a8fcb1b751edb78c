"""Which credentials a pull tries, in which order (BACK-209)."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import Secret
from lightkube.models.meta_v1 import ObjectMeta

from refkubelet.kuberuntime.images.keyring import (
    Credential,
    CredentialError,
    covers,
    credentials_of,
    keyring,
    node_entries,
)
from refkubelet.kuberuntime.images.node_credentials import NodeCredentials
from simclock import RealClock


def ring(*places: str) -> Any:
    """A keyring in which each place's user is the place as written."""
    return keyring((place, Credential(place, "secret")) for place in places)


def users(places: tuple[str, ...], repository: str) -> list[str]:
    return [c.username for c in ring(*places).lookup(repository)]


def secret(
    data: object, *, kind: str = "dockerconfigjson", name: str = "s", key: str = ""
) -> Secret:
    text = data if isinstance(data, str) else json.dumps(data)
    return Secret(
        metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"),
        type=f"kubernetes.io/{kind}",
        data={key or f".{kind}": base64.b64encode(text.encode()).decode()},
    )


@pytest.mark.parametrize(
    ("place", "repository", "fits"),
    [
        ("reg.io", "reg.io/app", True),
        ("https://reg.io", "reg.io/app", True),
        ("http://reg.io/", "reg.io/app", True),
        ("https://reg.io/v1/", "reg.io/app", True),
        ("https://reg.io/v2/", "reg.io/app", True),
        ("reg.io/v2/team", "reg.io/team/app", True),
        ("user@reg.io", "reg.io/app", True),
        ("reg.io/team", "reg.io/team/app", True),
        ("reg.io/team", "reg.io/teamwork/app", True),  # a beginning of the text, not of the parts
        ("reg.io/team/", "reg.io/team", False),
        ("reg.io/team", "reg.io/other/app", False),
        ("reg.io:5000", "reg.io:5000/app", True),
        ("reg.io", "reg.io:5000/app", False),
        ("reg.io:5000", "reg.io/app", False),
        ("*.reg.io", "eu.reg.io/app", True),
        ("*.reg.io", "reg.io/app", False),
        ("*.reg.io", "a.b.reg.io/app", False),
        ("*.*.reg.io", "a.b.reg.io/app", True),
        ("eu-*.reg.io", "eu-west.reg.io/app", True),
        ("eu-*.reg.io", "us-west.reg.io/app", False),
        ("reg.*", "reg.io/app", True),
        ("a*b*c.io", "abc.io/app", True),
        ("a*b*c.io", "a-b-b-c.io/app", True),
        ("a*b*c.io", "ac.io/app", False),
        ("a*b*c.io", "acb.io/app", False),
        ("a*bb*bc.io", "abbc.io/app", False),
        ("a*bb*bc.io", "abbbc.io/app", True),
        ("a*a.io", "a.io/app", False),
        ("a*.io", "a.io/app", True),
        ("*a*a.io", "ba-a.io/app", True),
        ("*b*.io", "b.io/app", True),
        ("*bc*c.io", "bcc.io/app", True),
        ("*bc*c.io", "bc.io/app", False),
        ("REG.io", "reg.io/app", False),
        ("[::1]:5000", "[::1]:5000/app", True),
        ("[::1]", "[::1]/app", True),
        ("[::1]", "[::1]:80/app", False),
        ("two words", "two words/app", False),
        ("reg.io:port", "reg.io:port/app", False),
    ],
)
def test_what_a_place_covers_BACK_209(place: str, repository: str, fits: bool) -> None:
    assert users((place,), repository) == ([place] if fits else [])


@pytest.mark.parametrize(
    "place", ["https://index.docker.io/v1/", "index.docker.io", "https://index.docker.io/v2/"]
)
@pytest.mark.parametrize(
    ("repository", "fits"),
    [
        ("docker.io/library/busybox", True),
        ("index.docker.io/library/busybox", True),
        ("localhost/app", True),  # upstream's guess: no dot, no colon, so it is no host
        ("localhost:5000/app", False),
        ("reg.io/app", False),
    ],
)
def test_credentials_of_the_default_registry(place: str, repository: str, fits: bool) -> None:
    assert users((place,), repository) == ([place] if fits else [])


def test_the_default_registry_comes_only_when_nothing_else_fits() -> None:
    assert users(("index.docker.io", "docker.io"), "docker.io/a/b") == ["docker.io"]


def test_the_more_specific_place_comes_first() -> None:
    places = ("reg.io", "reg.io/team/app", "reg.io/team")
    assert users(places, "reg.io/team/app") == ["reg.io/team/app", "reg.io/team", "reg.io"]


def test_places_that_mean_the_same_keep_their_order() -> None:
    places = ("https://reg.io/v2/", "reg.io", "http://reg.io/")
    assert users(places, "reg.io/app") == list(places)


def test_secrets_of_both_kinds_are_read() -> None:
    auth = base64.b64encode(b"joe:pass:word").decode()
    entries = credentials_of(
        [
            secret({"auths": {"a.io": {"auth": auth, "username": "ignored"}}}, name="one"),
            secret({"b.io": {"username": "ann", "password": "p"}}, kind="dockercfg", name="two"),
        ]
    )
    assert [(place, c.username, c.password) for place, c in entries] == [
        ("a.io", "joe", "pass:word"),
        ("b.io", "ann", "p"),
    ]
    sources = [c.source for _, c in entries]
    assert [(s.namespace, s.name, s.uid) for s in sources if s] == [
        ("ns", "one", "uid-one"),
        ("ns", "two", "uid-two"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        secret({"auths": {"a.io": {}}}, kind="Opaque", key=".dockerconfigjson"),
        secret({"a.io": {}}, kind="dockerconfigjson", key=".dockercfg"),
        secret("", kind="dockercfg"),
        secret({"auths": None}),
        Secret(type="kubernetes.io/dockerconfigjson"),
    ],
)
def test_secrets_that_say_nothing_are_skipped(other: Secret) -> None:
    assert credentials_of([other]) == []


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"auths": {"a.io": {"auth": "!"}}}, "illegal base64 data at input byte 0"),
        ({"auths": {"a.io": {"auth": "am9l_w"}}}, "illegal base64 data at input byte 4"),
        ({"auths": {"a.io": {"auth": "am9lX"}}}, "illegal base64 data at input byte 4"),
        ({"auths": {"a.io": {"auth": "am9lXQ="}}}, "illegal base64 data at input byte 7"),
        ({"auths": {"a.io": {"auth": "am9lXQ==="}}}, "illegal base64 data at input byte 8"),
        ({"auths": {"a.io": {"auth": "am9lXQQ=="}}}, "illegal base64 data at input byte 8"),
        ({"auths": {"a.io": {"auth": "am9l="}}}, "illegal base64 data at input byte 4"),
        ({"auths": {"a.io": {"auth": "am9lX="}}}, "illegal base64 data at input byte 5"),
        ({"auths": {"a.io": {"auth": "am=lX"}}}, "illegal base64 data at input byte 2"),
        ("[]", "the Docker configuration is not a JSON object"),
        (
            {"auths": {"a.io": {"auth": base64.b64encode(b"joe").decode()}}},
            "unable to parse auth field, must be formatted as base64(username:password)",
        ),
        ("no json", "the Docker configuration is not JSON"),
        ({"auths": {"a.io": 3}}, "the entry of a.io is not an object"),
        ({"auths": ["a.io"]}, "the entries of the Docker configuration are not an object"),
        ("[" * 100_000, "the Docker configuration is not JSON"),
        ({"auths": {"a.io": {"password": 3}}}, "password is not a text"),
    ],
)
def test_unreadable_secrets_say_why(data: object, text: str) -> None:
    with pytest.raises(CredentialError) as raised:
        credentials_of([secret(data)])
    assert str(raised.value) == text


def test_a_secret_that_is_not_base64_says_so() -> None:
    broken = secret({"auths": {}})
    broken.data = {".dockerconfigjson": "abc"}
    with pytest.raises(CredentialError) as raised:
        credentials_of([broken])
    assert str(raised.value) == "illegal base64 data in the secret"


def test_a_secret_that_says_nothing_keeps_none_from_being_read() -> None:
    entry = {"auths": {"a.io": {"username": "u"}}}
    bare = Secret(type="kubernetes.io/dockerconfigjson", data=secret(entry).data)
    found = credentials_of([Secret(type=None, data={"": "e30="}), bare, secret(entry)])
    sources = [c.source for _, c in found]
    assert [(s.namespace, s.name, s.uid) for s in sources if s] == [
        ("", "", ""),
        ("ns", "s", "uid-s"),
    ]


@pytest.mark.parametrize(
    ("auth", "user"),
    [
        (base64.b64encode(b"joe:secret").decode(), "joe"),
        (base64.b64encode(b"joe:secret").decode().rstrip("="), "joe"),  # padding may lack
        ("am9l\r\nOnNlY3Jl\ndA==\n", "joe"),  # line ends do not count
        (base64.b64encode(b"j\xff:secret").decode(), "j\ufffd"),
    ],
)
def test_auth_is_base64_of_user_and_password(auth: str, user: str) -> None:
    entry = {"auth": auth, "email": "joe@a.io"}
    ((_, credential),) = credentials_of([secret({"auths": {"a.io": entry}})])
    wanted = (user, "secret", "joe@a.io")
    assert (credential.username, credential.password, credential.email) == wanted


def test_files_of_the_node() -> None:
    modern, legacy = b'{"auths": {"a.io": {"username": "u"}}}', b'{"b.io": {"username": "v"}}'
    assert [p for p, _ in node_entries(modern, legacy=False)] == ["a.io"]
    ((place, credential),) = node_entries(legacy, legacy=True)
    assert (place, credential.source) == ("b.io", None)


@pytest.mark.parametrize("kind", ["fifo", "brackets", "list"])
def test_a_broken_file_of_the_node_is_passed_over_BACK_209(tmp_path: Path, kind: str) -> None:
    first, second = tmp_path / "config.json", tmp_path / ".dockercfg"
    if kind == "fifo":
        os.mkfifo(first)
    else:
        first.write_text("[" * 100_000 if kind == "brackets" else '{"auths": [1]}')
    second.write_text('{"b.io": {"username": "v"}}')
    found = NodeCredentials(RealClock(), (first, second)).lookup("b.io/app")
    assert [c.username for c in found] == ["v"]


def test_the_hash_is_that_of_the_fields_that_are_set_BACK_210() -> None:
    known = "a55436fc140d516560d072c5fe8700385ce9f41629abf65c1edcbcb39fac691d"
    assert Credential("user", "password").hash == known
    assert Credential("user", "password", "e@x").hash != known
    text = rb'{"username":"u\u003c\u003e\u0026\xc3\xa9","password":"p","email":"e@x"}'
    marshalled = text.replace(rb"\xc3\xa9", "é".encode())  # as Go writes it
    assert Credential("u<>&é", "p", "e@x").hash == hashlib.sha256(marshalled).hexdigest()


def test_a_password_is_not_shown() -> None:
    assert "geheim" not in repr(ring("a.io")) + repr(Credential("joe", "geheim"))


LABEL = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=4)
HOST = st.lists(LABEL, min_size=1, max_size=3).map(".".join)
PORT = st.sampled_from(["", ":5000", ":80"])
PATH = st.lists(LABEL, min_size=1, max_size=3).map("/".join)


@given(HOST, PORT, PATH)
def test_every_beginning_of_a_repository_covers_it(host: str, port: str, path: str) -> None:
    repository = f"{host}{port}/{path}"
    parts = path.split("/")
    for count in range(len(parts) + 1):
        assert covers("/".join([f"{host}{port}", *parts[:count]]), repository)


@given(HOST, PORT, PATH, st.data())
def test_a_star_stands_for_one_part_of_the_host(
    host: str, port: str, path: str, data: st.DataObject
) -> None:
    labels = host.split(".")
    chosen = data.draw(st.integers(0, len(labels) - 1))
    place = ".".join("*" if i == chosen else label for i, label in enumerate(labels)) + port
    assert covers(place, f"{host}{port}/{path}")
    assert not covers(place, f"extra.{host}{port}/{path}")


@given(st.lists(st.tuples(HOST, PORT, PATH), min_size=1, max_size=6), HOST, PORT, PATH)
def test_whatever_is_found_covers_the_repository_specific_first(
    entries: list[tuple[str, str, str]], host: str, port: str, path: str
) -> None:
    repository = f"{host}.tld{port}/{path}"
    places = [f"{h}.tld{p}/{x}" for h, p, x in entries] + [f"{host}.tld{port}"]
    found = users(tuple(places), repository)
    assert all(covers(place, repository) for place in found)
    assert set(found) == {place for place in places if covers(place, repository)}
    assert found == sorted(found, reverse=True)
