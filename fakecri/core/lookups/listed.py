"""Objects of which lists are asked for all the time, with the answers that were given.

A kubelet lists everything every second, and nearly every time nothing has changed. What must never
happen here: an answer outlives a change of what it tells. So every way to change the table forgets
the answers, and code that changes an object in a way that lists show calls `changed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar

from fakecri.core.lookups.prefix_table import PrefixTable

POD_UID: Final = "io.kubernetes.pod.uid"
"""The label by which a kubelet asks for what is of one pod, whenever that changes."""
_MOST_ANSWERS: Final = 8


class Labelled(Protocol):
    """A sandbox or a container: `config.labels` never changes."""

    @property
    def config(self) -> Any: ...


V = TypeVar("V", bound=Labelled)


class ListedTable(PrefixTable[V]):
    """A `PrefixTable` with whole lists as bytes, by the bytes of their requests."""

    def __init__(self, items: Iterable[tuple[str, V]] = ()) -> None:
        super().__init__()
        self._answers: dict[bytes, bytes] = {}
        self._by_pod: dict[str, dict[str, V]] = {}
        for key, value in items:
            self[key] = value

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        self._by_pod.setdefault(value.config.labels.get(POD_UID, ""), {})[key] = value
        self.changed()

    def __delitem__(self, key: str) -> None:
        pod = self[key].config.labels.get(POD_UID, "")
        super().__delitem__(key)
        del self._by_pod[pod][key]
        if not self._by_pod[pod]:
            del self._by_pod[pod]
        self.changed()

    def clear(self) -> None:
        super().clear()
        self._by_pod.clear()
        self.changed()

    def labelled(self, wanted: Mapping[str, str]) -> Iterable[V]:
        """Those that may have the wanted labels, oldest first: not all where a pod is named."""
        if POD_UID not in wanted:
            return self.values()
        return self._by_pod.get(wanted[POD_UID], {}).values()

    def changed(self) -> None:
        """What lists tell of an object is not what it was."""
        self._answers.clear()

    def answer(self, request: bytes) -> bytes | None:
        """The answer of last time, if nothing has changed since."""
        return self._answers.get(request)

    def keep(self, request: bytes, answer: bytes) -> bytes:
        """Remember the answer, one of a few, and return it."""
        if len(self._answers) < _MOST_ANSWERS:
            self._answers[request] = answer
        return answer
