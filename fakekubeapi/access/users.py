"""Users: who is behind a bearer token that is not one of a service account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubeobjects.arguments import arguments_told

ALL_AUTHENTICATED: Final = "system:authenticated"
MASTERS: Final = "system:masters"


@arguments_told
@dataclass(frozen=True, slots=True)
class User:
    """A user as an API server knows it (`UserInfo` of authentication.k8s.io)."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def info(self) -> dict[str, Any]:
        """The `UserInfo` of reviews, without its empty fields."""
        document: dict[str, Any] = {"username": self.name}
        if self.uid:
            document["uid"] = self.uid
        if self.groups:
            document["groups"] = list(self.groups)
        if self.extra:
            document["extra"] = {key: list(values) for key, values in self.extra.items()}
        return document


ADMIN: Final = User("kubernetes-admin", groups=(MASTERS, ALL_AUTHENTICATED))
"""Who sends requests without a token: this server asks nobody who they are."""
ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))


@arguments_told
class Users:
    """The table of bearer tokens and their users, empty at first."""

    def __init__(self) -> None:
        self._by_token: dict[str, User] = {}
        self._unexplained: set[str] = set()

    def add(
        self,
        token: str,
        name: str,
        *,
        groups: Iterable[str] = (),
        uid: str = "",
        extra: Mapping[str, Iterable[str]] | None = None,
    ) -> User:
        """Let `token` be one of the user `name`, who is in `groups` and, as everybody whose token
        is known, in system:authenticated; `extra`: further facts, each with its values. A token
        that is there already gets this user. Returns the user. Raises: ValueError for an empty
        token or name."""
        if not token or not name:
            raise ValueError(f"wanted a token and a name, got {token!r} and {name!r}")
        facts = {key: tuple(values) for key, values in (extra or {}).items()}
        self._by_token[token] = User(name, uid, (*groups, ALL_AUTHENTICATED), facts)
        self._unexplained.discard(token)
        return self._by_token[token]

    def remove(self, token: str, *, explained: bool = True) -> None:
        """Forget the token; nothing if it is not there. Not `explained`: reviews refuse it without
        an error, as a server does whose authenticators have nothing to say about it."""
        self._by_token.pop(token, None)
        if explained:
            self._unexplained.discard(token)
        else:
            self._unexplained.add(token)

    def is_explained(self, token: str) -> bool:
        """Whether a review that refuses the token says why."""
        return token not in self._unexplained

    def of_token(self, token: str) -> User | None:
        """Whose token it is; None: it is not in the table."""
        return self._by_token.get(token)

    def knows(self, name: str) -> bool:
        """Whether a user of that name has a token here."""
        return any(user.name == name for user in self._by_token.values())
