"""The users and groups that an image knows: the lines of its /etc/passwd and /etc/group. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

_PASSWD: Final = ("root:x:0:0:root:/root:/bin/sh", "nobody:x:65534:65534::/:/bin/false")
_GROUP: Final = ("root:x:0:", "nogroup:x:65534:")
_USER_FIELDS, _GROUP_FIELDS = 7, 4


class User(Struct, frozen=True):
    """One line of /etc/passwd."""

    name: str
    uid: int
    gid: int
    home: str


class Accounts(Struct, frozen=True):
    """Both files, as lines; by default those of every image of the fake. Raises ValueError for a
    line that is none."""

    passwd: tuple[str, ...] = _PASSWD
    group: tuple[str, ...] = _GROUP

    def __post_init__(self) -> None:
        _ = self.users(), self.group_names()

    def with_lines(self, users: Iterable[str], groups: Iterable[str]) -> Accounts:
        """These and the others. Raises ValueError for a line that is none."""
        return Accounts((*self.passwd, *users), (*self.group, *groups))

    def users(self) -> dict[int, User]:
        """By number; the first line of a number counts."""
        found: dict[int, User] = {}
        for line in self.passwd:
            name, _, uid, gid, _, home, _ = _fields(line, _USER_FIELDS, "users")
            found.setdefault(int(uid), User(name, int(uid), int(gid), home or "/"))
        return found

    def user(self, uid: int) -> User | None:
        """By number; None: the image does not know it."""
        return self.users().get(uid)

    def named(self, name: str) -> User | None:
        """By name; None: the image does not know it."""
        return next((user for user in self.users().values() if user.name == name), None)

    def user_names(self) -> dict[int, str]:
        return {user.uid: user.name for user in self.users().values()}

    def group_names(self) -> dict[int, str]:
        return {gid: name for name, gid, _ in self._groups()}

    def groups_of(self, name: str) -> tuple[int, ...]:
        """The groups that name this user as a member, in their order."""
        return tuple(gid for _, gid, members in self._groups() if name and name in members)

    def _groups(self) -> list[tuple[str, int, list[str]]]:
        rows = (_fields(line, _GROUP_FIELDS, "groups") for line in self.group)
        return [(name, int(gid), members.split(",")) for name, _, gid, members in rows]


def _fields(line: str, count: int, what: str) -> list[str]:
    fields = line.split(":")
    numbers = fields[2:4] if count == _USER_FIELDS else fields[2:3]
    if len(fields) != count or not fields[0] or not all(n.isdecimal() for n in numbers):
        file = "passwd" if count == _USER_FIELDS else "group"
        raise ValueError(f"{what}: wanted lines of /etc/{file}, got {line!r}")
    return fields


def text_of(lines: Iterable[str]) -> bytes:
    """The file that has these lines.

    >>> text_of(["a", "b"])
    b'a\\nb\\n'
    """
    return "".join(f"{line}\n" for line in lines).encode()


def read_accounts(passwd: bytes, group: bytes) -> Accounts:
    """What these two files say; lines that say nothing are left out.

    >>> read_accounts(b"me:x:7:7::/:/bin/sh\\nodd", b"").user_names()
    {7: 'me'}
    """
    lines = [_plain(text) for text in (passwd, group)]
    users = tuple(line for line in lines[0] if _is_one(line, _USER_FIELDS))
    return Accounts(users, tuple(line for line in lines[1] if _is_one(line, _GROUP_FIELDS)))


def _plain(text: bytes) -> list[str]:
    return text.decode("utf-8", "replace").splitlines()


def _is_one(line: str, count: int) -> bool:
    try:
        _fields(line, count, "")
    except ValueError:
        return False
    return True
