"""References to images, read as Docker reads them (CRI-090). Pure."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_NAME: Final = re.compile(
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
)
_HOST: Final = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d+)?"
)
_TAG: Final = re.compile(r"\w[\w.-]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class Reference(Struct, frozen=True):
    """A parsed image reference: `name` with host, and a tag or a digest."""

    name: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"


def parse_reference(text: str) -> Reference:
    """Normalise like Docker (CRI-090). Raises ValueError for a text that is no reference.

    >>> str(parse_reference("busybox"))
    'docker.io/library/busybox:latest'
    """
    rest, _, digest = text.partition("@")
    if digest and not _DIGEST.fullmatch(digest):
        raise ValueError("invalid reference format")
    head, slash, tail = rest.rpartition("/")
    last, colon, tag = tail.partition(":")
    rest = head + slash + last
    if colon and not _TAG.fullmatch(tag):
        raise ValueError("invalid reference format")
    host, path = _split_host(rest)
    if path.lower() != path:
        raise ValueError("invalid reference format: repository name must be lowercase")
    if not _HOST.fullmatch(host) or not _NAME.fullmatch(path):
        raise ValueError("invalid reference format")
    if digest:
        return Reference(f"{host}/{path}", digest=digest)
    return Reference(f"{host}/{path}", tag=tag or "latest")


def _split_host(rest: str) -> tuple[str, str]:
    first, slash, path = rest.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        host = "docker.io" if first == "index.docker.io" else first
    else:
        host, path = "docker.io", rest
    if host == "docker.io" and "/" not in path:
        path = f"library/{path}"
    return host, path
