"""The target of a request line: its path and its query, decoded. Pure.

Apart from `carrier`, which needs an HTTP server: requests in the same process have targets, too.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

QUERY_FIELDS: Final = 10_000


class BadRequest(ValueError):
    """The request line is none."""


def path_of(target: str) -> str:
    """The decoded path of a request target, whole addresses included. Raises `BadRequest`.

    >>> path_of("/logs/%2e%2e/x?y=1"), path_of("http://node:10250/pods")
    ('/logs/../x', '/pods')
    """
    try:
        parts = urlsplit(target) if not target.startswith("/") else urlsplit("//h" + target)
        path = unquote_to_bytes(_checked(parts.path)).decode()
    except ValueError:
        raise BadRequest("the path cannot be decoded") from None
    if "\0" in path or not path.startswith("/"):
        raise BadRequest("the path is none")
    return path


def _checked(path: str) -> str:
    """The path, if each `%` begins an escape. Raises ValueError."""
    for part in path.split("%")[1:]:
        int(part[:2] if len(part) >= 2 and part[:2].isalnum() else "none", 16)
    return path


def query_of(target: str) -> tuple[tuple[str, str], ...]:
    """The decoded pairs of a request target. Raises `BadRequest`."""
    query = target.partition("?")[2].partition("#")[0]
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=QUERY_FIELDS)
    except ValueError:
        raise BadRequest("the query has too many fields") from None
    return tuple(pairs)
