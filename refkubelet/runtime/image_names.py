"""Image names as the kubelet reads them: is it a reference, and does it need a tag? Pure. BACK-201.

Grammar: [domain/]path[:tag][@digest]. The first part is a domain if it has a dot, a colon or an
upper-case letter, or is `localhost`; path components are lower case.
"""

from __future__ import annotations

import re
from typing import Final

_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH: Final = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*\Z")
_DOMAIN_PART: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_DOMAIN: Final = re.compile(
    rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?\Z"
)
_TAG: Final = re.compile(r"[\w][\w.-]{0,127}\Z", re.ASCII)
_DIGEST: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}\Z"
)
_BARE_ID: Final = re.compile(r"[a-f0-9]{64}\Z")
HUB: Final = "docker.io"


class InvalidImageNameError(ValueError):
    """The name is no image reference; the text says what is wrong with it."""


def repository(image: str) -> str:
    """The full name without tag and digest, as keyrings know it.

    >>> repository("busybox:1"), repository("index.docker.io/a/b"), repository("r:5000/a@sha256:0")
    ('docker.io/library/busybox', 'docker.io/a/b', 'r:5000/a')
    """
    name = without_tag(image)
    domain, slash, path = name.partition("/")
    if not (slash and _looks_like_domain(domain)):
        domain, path = HUB, name
    elif domain == "index.docker.io":
        domain = HUB
    if domain == HUB and "/" not in path:
        path = f"library/{path}"
    return f"{domain}/{path}"


def without_tag(image: str) -> str:
    """The name as written, without tag and digest.

    >>> without_tag("localhost:5000/b:1@sha256:0"), without_tag("b")
    ('localhost:5000/b', 'b')
    """
    return _split_tag(image.partition("@")[0])[0]


def with_default_tag(image: str) -> str:
    """The name with `:latest` if it has neither tag nor digest; never otherwise changed.

    >>> with_default_tag("busybox"), with_default_tag("localhost:5000/b"), with_default_tag("a:1")
    ('busybox:latest', 'localhost:5000/b:latest', 'a:1')

    Raises `InvalidImageNameError`.
    """
    name, at, digest = image.partition("@")
    if at and not _DIGEST.match(digest):
        raise InvalidImageNameError("invalid reference format")
    path, tag = _split_tag(name)
    _check_name(path)
    if tag is not None and not _TAG.match(tag):
        raise InvalidImageNameError("invalid reference format")
    return image if at or tag is not None else f"{image}:latest"


def _split_tag(name: str) -> tuple[str, str | None]:
    head, colon, tail = name.rpartition(":")
    return (head, tail) if colon and "/" not in tail else (name, None)


def _check_name(name: str) -> None:
    if _BARE_ID.match(name):
        raise InvalidImageNameError(
            f"invalid repository name ({name}), cannot specify 64-byte hexadecimal strings"
        )
    domain, slash, path = name.partition("/")
    if not (slash and _looks_like_domain(domain)):
        domain, path = "", name
    if domain and not _DOMAIN.match(domain):
        raise InvalidImageNameError("invalid reference format")
    if path.lower() != path:
        raise InvalidImageNameError("invalid reference format: repository name must be lowercase")
    if not _PATH.match(path):
        raise InvalidImageNameError("invalid reference format")


def _looks_like_domain(text: str) -> bool:
    return text == "localhost" or "." in text or ":" in text or text.lower() != text
