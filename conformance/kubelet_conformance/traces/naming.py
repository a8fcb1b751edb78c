"""Names for ids and UIDs, so that two runs can be compared. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_WORD: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{12,}"
)


class Names:
    """Which id is whose. `places`: further texts -> what stands for them (directories)."""

    def __init__(self, places: Mapping[str, str] | None = None) -> None:
        self._names: dict[str, str] = {}
        self._owners: dict[str, Owner] = {}
        self._taken: dict[str, int] = {}
        self._places = sorted((places or {}).items(), key=lambda pair: -len(pair[0]))

    def sandbox(self, identity: str, pod: str, attempt: int) -> None:
        """Name the sandbox of a pod: `sandbox:web/0`."""
        self._name(identity, f"sandbox:{pod}/{attempt}", (pod, "", attempt))

    def container(self, identity: str, pod: str, container: str, attempt: int) -> None:
        """Name a container: `ctr:web/main/0`."""
        self._name(identity, f"ctr:{pod}/{container}/{attempt}", (pod, container, attempt))

    def uid(self, uid: str, pod: str) -> None:
        """Name the UID of a pod: `uid:web`."""
        if uid and uid not in self._names:
            self._names[uid] = self._numbered(f"uid:{pod}")

    def owner(self, identity: str) -> Owner:
        """Pod, container and attempt that an id belongs to; nothing of an unknown one."""
        return self._owners.get(identity, NOBODY)

    def _name(self, identity: str, name: str, owner: Owner) -> None:
        if not identity or identity in self._owners:
            return
        self._owners[identity] = owner
        if identity != name:
            self._names[identity] = self._numbered(name)

    def _numbered(self, name: str) -> str:
        """The name; a second thing of that name gets `#2`."""
        self._taken[name] = number = self._taken.get(name, 0) + 1
        return name if number == 1 else f"{name}#{number}"

    def named(self, value: Any) -> Any:
        """The same plain data with names in place of ids and places.

        >>> names = Names({"/tmp/x": "$CASE"})
        >>> names.sandbox("0123456789abcdef", "web", 0)
        >>> names.named({"id": "0123456789abcdef", "path": "/tmp/x/logs"})
        {'id': 'sandbox:web/0', 'path': '$CASE/logs'}
        """
        if isinstance(value, str):
            return self._in_text(value)
        if isinstance(value, Mapping):
            return {self._in_text(str(key)): self.named(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.named(item) for item in value]
        return value

    def _in_text(self, text: str) -> str:
        for place, name in self._places:
            if place in text:
                text = text.replace(place, name)
        if len(text) < 12:
            return text
        return _WORD.sub(lambda match: self._of_word(match[0]), text)

    def _of_word(self, word: str) -> str:
        """The name in place of a word of digits. Other letters may stand before an id: the d of
        `pod<UID>` is a digit, too."""
        for cut in range(min(len(word), 3)):
            if name := self._names.get(word[cut:]):
                return word[:cut] + name
        return word


Owner = tuple[str, str, int | None]
"""Pod, container and attempt."""
NOBODY: Final[Owner] = ("", "", None)
