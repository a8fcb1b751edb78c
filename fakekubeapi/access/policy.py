"""The access policy: a table of rows; of the rows that fit a request, the newest decides. Where no
row fits, users with a token in `FakeApi.users` and members of system:masters may do everything. For
all others the policy has no opinion: they are neither allowed nor denied, as with an authorizer
that does not know the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from fakekubeapi.access.users import MASTERS

ANY: Final = "*"
REASON: Final = "a row of the access table"


class Attributes(Struct, frozen=True):
    """One access to decide on (the spec of a SubjectAccessReview)."""

    user: str = ""
    groups: tuple[str, ...] = ()
    verb: str = ""
    api_group: str = ""
    resource: str = ""
    """"": not a resource, but `path`."""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""
    """Of a request that is not for a resource: `/healthz`."""


class Decision(Struct, frozen=True):
    """The status of a review: allowed, denied, or neither (no opinion)."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""


class AccessRow(Struct, frozen=True):
    """A row of the table: it fits an access that has these values. None, and `*`: any; a path may
    end in `*`. `group` is one of the user's groups."""

    says: Decision
    user: str | None = None
    group: str | None = None
    verb: str | None = None
    api_group: str | None = None
    resource: str | None = None
    subresource: str | None = None
    name: str | None = None
    namespace: str | None = None
    path: str | None = None

    def fits(self, access: Attributes) -> bool:
        """Whether the row is about that access."""
        if self.group not in (None, ANY, *access.groups):
            return False
        if self.path is not None and not _fits_path(self.path, access.path):
            return False
        return all(
            getattr(self, field) in (None, ANY, getattr(access, field)) for field in _COMPARED
        )


_COMPARED: Final = (*("user", "verb", "api_group", "resource", "subresource", "name", "namespace"),)
_FIELDS: Final = tuple(name for name in AccessRow.__struct_fields__ if name != "says")


def _fits_path(wanted: str, path: str) -> bool:
    return path.startswith(wanted[:-1]) if wanted.endswith(ANY) else path == wanted


@dataclass
class AccessPolicy:
    """The table. `is_known` tells whether a user may do what no row is about."""

    is_known: Callable[[str], bool] = lambda name: False
    _rows: list[AccessRow] = field(default_factory=list)

    def allow(self, **wanted: str) -> AccessRow:
        """Add a row that allows; `wanted` are fields of `AccessRow`, such as
        `user="alice", verb="get", resource="nodes", subresource="proxy"`. Raises: ValueError for
        another field."""
        return self._add(Decision(allowed=True, reason=REASON), wanted)

    def deny(self, **wanted: str) -> AccessRow:
        """Add a row that denies; otherwise as `allow`."""
        return self._add(Decision(denied=True, reason=REASON), wanted)

    def say_nothing(self, **wanted: str) -> AccessRow:
        """Add a row without an opinion: neither allowed nor denied; otherwise as `allow`."""
        return self._add(Decision(reason=REASON), wanted)

    def contradict(self, **wanted: str) -> AccessRow:
        """Add a row that allows and denies, as no server should; otherwise as `allow`."""
        return self._add(Decision(allowed=True, denied=True, reason=REASON), wanted)

    def remove(self, row: AccessRow) -> None:
        """Take a row away; nothing if it is not there."""
        if row in self._rows:
            self._rows.remove(row)

    def decide(self, access: Attributes) -> Decision:
        """What the newest row that fits says; see above for an access that none fits."""
        for row in reversed(self._rows):
            if row.fits(access):
                return row.says
        if MASTERS in access.groups or self.is_known(access.user):
            return Decision(allowed=True)
        return Decision()

    def _add(self, says: Decision, wanted: dict[str, str]) -> AccessRow:
        unknown = sorted(set(wanted) - set(_FIELDS))
        if unknown:
            raise ValueError(f"an access row has no {', '.join(unknown)}; it has {_FIELDS}")
        row = AccessRow(says, **wanted)
        self._rows.append(row)
        return row
