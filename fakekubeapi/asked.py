"""A request, read once: what its path means, what is in its body, what it asks for.

The parts are worked out when they are first looked at, and kept: transports, negotiation, the
server and the verbs look at the same ones. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from fakekubeapi.access import ADMIN, User
from fakekubeapi.bodies import APPLY_PATCH, JSON, decode_body
from fakekubeapi.errors import StatusError
from fakekubeapi.requests.kinds import kind_at
from fakekubeapi.requests.parameters import dry_run, is_true
from fakekubeapi.requests.routes import Route, parse_route
from kubeobjects.schema.messages import Schema, schema_of

_OTHER_KINDS: Final = ("binding", "eviction", "token")
"""Subresources whose bodies are objects of another kind than the resource's."""


@dataclass(frozen=True, eq=False)
class Asked:
    """One request."""

    method: str
    """In capitals."""
    path: str
    """Without the query, not quoted."""
    params: Mapping[str, str] = field(default_factory=dict)
    """The query."""
    sent: Any = None
    """The body as it came: a JSON value, bytes, or None."""
    content_type: str = JSON
    """What the bytes are; for a PATCH always the kind of patch."""
    user: User = ADMIN
    user_agent: str = ""
    """The program that sends it."""
    schema: Schema = field(default_factory=schema_of)
    """The types of the minor that is served."""
    undisturbed: bool = False
    """Whether faults are not for it; a server that is down is down for all."""

    def with_body(self, sent: Any) -> Asked:
        """The same request with a body; its path is not read again."""
        made = replace(self, sent=sent)
        if "route" in self.__dict__:
            made.__dict__["route"] = self.route
        return made

    @cached_property
    def route(self) -> Route:
        """What the path means. Raises: StatusError as `parse_route`."""
        return parse_route(self.method, self.path, self.schema)

    @cached_property
    def body(self) -> Any:
        """The decoded body, which nothing else refers to. Raises: StatusError as `decode_body`."""
        expected = self._kind_of_body() if isinstance(self.sent, bytes) else ("", "")
        try:
            return decode_body(
                self.method, self.sent, self.content_type, expected=expected, schema=self.schema
            )
        except StatusError:
            self.route  # noqa: B018 - a path that there is not is refused before what is sent there
            raise

    def _kind_of_body(self) -> tuple[str, str]:
        """apiVersion and kind of what is sent to this path; both "" if nothing can be."""
        try:
            return kind_at(self.method, self.route)
        except StatusError:
            return "", ""

    @property
    def applies(self) -> bool:
        """Whether this is a server-side apply."""
        kind = self.content_type.partition(";")[0].strip()
        return self.method == "PATCH" and kind == APPLY_PATCH

    @property
    def watches(self) -> bool:
        """Whether this opens a watch."""
        return self.method == "GET" and is_true(self.params.get("watch"))

    @property
    def strict(self) -> bool:
        """Whether fields that the kind does not have are refused."""
        strict = self.params.get("fieldValidation") == "Strict"
        return strict and self.route.subresource not in _OTHER_KINDS

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored. Raises: StatusError for another word."""
        return dry_run(self.method, self.params)
