"""Which form of an answer a client wants: the header Accept."""

from __future__ import annotations

import re
from typing import Final

from fakekubeapi.errors import StatusError

AS_IS: Final = ""
_JSON_RANGES: Final = frozenset(("application/json", "application/*", "*/*"))
_RANGE: Final = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+")
_FORMS: Final = frozenset(("Table", "PartialObjectMetadata", "PartialObjectMetadataList"))


def form_of(accept: str) -> str:
    """The first form in the header that this server can give: `Table`, `PartialObjectMetadata` (or
    `...List`), or `AS_IS`, which an empty header means, too. Raises: StatusError 406 if there is
    none.

    >>> form_of("application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
    'Table'
    """
    if not accept.strip():
        return AS_IS
    for one in accept.split(","):
        media, *given = (part.strip() for part in one.split(";"))
        wishes = dict(part.split("=", 1) for part in given if "=" in part)
        form = wishes.get("as", AS_IS)
        if not _RANGE.fullmatch(media) or media not in _JSON_RANGES or wishes.get("q") == "0":
            continue
        if form == AS_IS:
            return AS_IS
        if form in _FORMS and wishes.get("v", "v1") == "v1" and _is_meta(wishes):
            return form
    raise StatusError(
        406, "only the following media types are accepted: application/json", reason="NotAcceptable"
    )


def _is_meta(wishes: dict[str, str]) -> bool:
    return wishes.get("g", "meta.k8s.io") == "meta.k8s.io"
