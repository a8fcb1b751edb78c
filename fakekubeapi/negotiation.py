"""In which format and form a request is answered: what its client takes, of what there is. Pure."""

from __future__ import annotations

from collections.abc import Callable

from fakekubeapi.asked import Asked
from fakekubeapi.bodies import JSON, PROTOBUF
from fakekubeapi.discovery.documents import discovery_document
from fakekubeapi.errors import StatusError
from fakekubeapi.protobuf.envelope import has_message
from fakekubeapi.requests.accept import FORMATS, STREAMS, Wanted, wanted
from fakekubeapi.requests.kinds import kind_at
from kubeobjects.schema.messages import Schema


def negotiated(asked: Asked, accept: str) -> Wanted:
    """Format and form of the answer to a request with this header Accept. Raises: StatusError 406
    if the client takes none that there is."""
    reads = asked.method == "GET"
    if reads and asked.path in ("/openapi/v2", "/version"):
        # Of OpenAPI kubectl wants a protobuf of its own and can do without.
        return wanted(accept, produces=(JSON,), serves=lambda media_type: media_type == JSON)
    if reads and (document := discovery_document(asked.path, asked.schema)) is not None:
        kind = document.get("kind")
        return (
            wanted(accept, forms=False, serves=_serves("v1", kind, asked.schema))
            if kind
            else Wanted()
        )
    try:
        route = asked.route
    except StatusError:  # that is what the answer says then
        return format_of_refusals(accept)
    resource = route.resource
    return wanted(
        accept,
        produces=FORMATS + STREAMS if reads and not route.name else FORMATS,
        watch=asked.watches,
        forms=resource.stored and kind_at("GET", route)[1] == resource.kind,
        serves=_serves(resource.api_version, resource.kind, asked.schema),
    )


def format_of_refusals(accept: str) -> Wanted:
    """The format of a Status that refuses a request: JSON where the client takes no other."""
    try:
        return wanted(accept, forms=False)
    except StatusError:
        return Wanted()


def _serves(api_version: str, kind: str, schema: Schema) -> Callable[[str], bool]:
    """Whether objects of that kind can be written in a format."""
    return lambda media_type: media_type != PROTOBUF or has_message(api_version, kind, schema)
