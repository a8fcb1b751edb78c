"""In which format and form a client wants its answer: the header Accept. Pure.

As in a kube-apiserver, two ask this of the header. The first only whether a media type of the path
is in it, by its full name or as `*/*`. The second takes the first clause that it can serve, in the
order of their quality; a quality of 0 comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from fakekubeapi.bodies import JSON, PROTOBUF, YAML
from fakekubeapi.errors import StatusError

AS_IS: Final = ""
FORMATS: Final = (JSON, YAML, PROTOBUF)
"""What answers can be written in; a client that takes anything gets the first."""
STREAMS: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
"""What watches can be written in."""
_META: Final = ("meta.k8s.io", "v1")
_FORMS: Final = frozenset(("Table", "PartialObjectMetadata", "PartialObjectMetadataList"))


class Wanted(Struct, frozen=True):
    """What a client gets."""

    format: str = JSON
    """One of `FORMATS`."""
    form: str = AS_IS
    """`Table`, `PartialObjectMetadata` (or `...List`), or `AS_IS`."""


class _Clause(Struct, frozen=True):
    """One media type of the header, or a range of them."""

    type: str
    subtype: str
    quality: float = 1.0
    params: dict[str, str] = field(default_factory=dict)

    def takes(self, media_type: str) -> bool:
        kind, _, name = media_type.partition("/")
        return self.type in (kind, "*") and self.subtype in (name, "*")

    def goes_before(self, other: _Clause) -> bool:
        if self.quality > other.quality:
            return True
        exact = (self.type != "*" and other.type == "*", self.subtype != "*")
        return exact[0] or (exact[1] and other.subtype == "*")


def wanted(
    accept: str,
    *,
    produces: Sequence[str] = FORMATS,
    watch: bool = False,
    forms: bool = True,
    serves: Callable[[str], bool] = lambda media_type: True,
) -> Wanted:
    """What the header means; an empty one means JSON. `produces`: the media types of the path.
    `watch`: whether the answer is a stream, which is never YAML. `forms`: whether objects can be
    given as tables or metadata. `serves`: whether these objects can be written in a format. Raises:
    StatusError 406 if nothing can be.

    >>> wanted("application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
    Wanted(format='application/json', form='Table')
    """
    if not accept:
        return Wanted()
    if not _known(accept) & {*produces, "*/*"}:
        available = ", ".join(produces)
        raise _not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {available}")
    for clause in _clauses(accept):
        for media_type in filter(clause.takes, FORMATS):
            form = _form(clause.params, media_type)
            if form is not None and (forms or form == AS_IS) and serves(media_type):
                if watch and media_type == YAML:
                    raise _not_acceptable(_only(STREAMS))
                return Wanted(media_type, form)
    raise _not_acceptable(_only(STREAMS if watch else FORMATS))


def _only(served: Sequence[str]) -> str:
    return f"only the following media types are accepted: {', '.join(served)}"


def _not_acceptable(message: str) -> StatusError:
    return StatusError(406, message, reason="NotAcceptable")


def _known(accept: str) -> set[str]:
    """The media types of the header, without what is said of them."""
    return {clause.partition(";")[0].strip() for clause in accept.split(",")}


def _form(params: dict[str, str], media_type: str) -> str | None:
    """The form that a clause asks for; None: one that there is not. Tables are never protobuf."""
    if params.get("stream", "watch") != "watch":
        return None
    if not {"as", "g", "v"} & params.keys():
        return AS_IS
    form = params.get("as", "")
    is_form = form in _FORMS and (params.get("g"), params.get("v")) == _META
    return form if is_form and (form != "Table" or media_type != PROTOBUF) else None


def _clauses(accept: str) -> list[_Clause]:
    """The clauses of the header, the best first, without those that are not media types."""
    clauses: list[_Clause] = []
    for text in accept.split(","):
        clause = _clause(text)
        if clause is not None:
            place = len(clauses)
            while place and clause.goes_before(clauses[place - 1]):
                place -= 1
            clauses.insert(place, clause)
    return clauses


def _clause(text: str) -> _Clause | None:
    media_type, *parameters = text.strip().split(";")
    kind, _, name = (part.strip() for part in media_type.partition("/"))
    if "/" in name or not (name or kind == "*"):
        return None
    pairs = [part.split("=") for part in parameters]
    params = {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2 and pair[1]}
    quality = _number(params.pop("q", "1"))
    return _Clause(kind, name or "*", quality, params)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
