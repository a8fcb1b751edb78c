"""Parses image names and adds the default tag (BACK-201). Pure.

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
_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_FORMAT: Final = "invalid reference format"
HUB: Final = "docker.io"
MAX_PATH: Final = 255


class InvalidImageNameError(ValueError):
    """The name is not an image reference; the text says why."""


def repository(image: str) -> str:
    """The full name without tag and digest, for matching with registry credentials.

    >>> repository("busybox:1"), repository("index.docker.io/a/b"), repository("r:5000/a@sha256:0")
    ('docker.io/library/busybox', 'docker.io/a/b', 'r:5000/a')
    """
    domain, rest = _split_domain(without_tag(image))
    return f"{domain}/{rest}"


def without_tag(image: str) -> str:
    """The name as written, without tag and digest.

    >>> without_tag("localhost:5000/b:1@sha256:0"), without_tag("b")
    ('localhost:5000/b', 'b')
    """
    return _split_tag(image.partition("@")[0])[0]


def with_default_tag(image: str) -> str:
    """The name, with `:latest` if it has neither tag nor digest, and otherwise unchanged.

    >>> with_default_tag("busybox"), with_default_tag("localhost:5000/b"), with_default_tag("a:1")
    ('busybox:latest', 'localhost:5000/b:latest', 'a:1')

    Raises `InvalidImageNameError`.
    """
    if _BARE_ID.match(image):
        raise InvalidImageNameError(
            f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
        )
    domain, rest = _split_domain(image)
    repository = rest.partition(":")[0]
    if repository.lower() != repository:
        raise InvalidImageNameError(f"{_FORMAT}: repository name ({repository}) must be lowercase")
    name, at, digest = rest.partition("@")
    path, tag = _split_tag(name)
    parts_fit = (tag is None or _TAG.match(tag)) and (not at or _DIGEST.match(digest))
    if not parts_fit or not _is_name(domain, path):
        upper = parts_fit and _is_name(domain.lower(), path)
        raise InvalidImageNameError("repository name must be lowercase" if upper else _FORMAT)
    if len(path) > MAX_PATH:
        raise InvalidImageNameError(f"repository name must not be more than {MAX_PATH} characters")
    if at:
        _check_digest(digest)
    return image if at or tag is not None else f"{image}:latest"


def _is_name(domain: str, path: str) -> bool:
    """Whether domain and path are valid. A first part that cannot be a domain may still be the
    first part of a path: `a_b.c/d`."""
    as_path = _PATH.match(f"{domain}/{path}")
    return bool(_PATH.match(path) and (_DOMAIN.match(domain) or as_path))


def _check_digest(digest: str) -> None:
    algorithm, _, encoded = digest.partition(":")
    if algorithm not in _DIGEST_LENGTHS:
        raise InvalidImageNameError("unsupported digest algorithm")
    if len(encoded) != _DIGEST_LENGTHS[algorithm]:
        raise InvalidImageNameError("invalid checksum digest length")
    if encoded.lower() != encoded:
        raise InvalidImageNameError("invalid checksum digest format")


def _split_domain(image: str) -> tuple[str, str]:
    """Domain and the rest, completed as Docker does: `busybox` is `docker.io`,
    `library/busybox`."""
    domain, slash, rest = image.partition("/")
    if not (slash and _looks_like_domain(domain)):
        domain, rest = HUB, image
    elif domain == "index.docker.io":
        domain = HUB
    if domain == HUB and "/" not in rest:
        rest = f"library/{rest}"
    return domain, rest


def _split_tag(name: str) -> tuple[str, str | None]:
    head, colon, tail = name.rpartition(":")
    return (head, tail) if colon and "/" not in tail else (name, None)


def _looks_like_domain(text: str) -> bool:
    return text == "localhost" or "." in text or ":" in text or text.lower() != text
