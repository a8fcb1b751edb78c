"""Changes to lists that are otherwise right: items missing, twice, or from the past.

The functions change a message in place. Items are picked by the pod, container and image that they
are about; other items stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message

from fakecri.behaviors.matching import Match, Subject
from fakecri.cri.list_streams import STREAMS

SubjectOf: TypeAlias = Callable[[str], Subject]
"""What an id is about, as far as recorded calls tell."""

ITEM_FIELDS: Final = {
    **{stream.unary: stream.items for stream in STREAMS.values()},
    **{name: stream.batch for name, stream in STREAMS.items()},
}
"""The methods that answer with a list, and the field of the response that holds it."""
_TIMES: Final = frozenset({"created_at", "started_at", "finished_at", "timestamp"})


def leave_out(items: Any, match: Match, keep: int | None, subject_of: SubjectOf) -> None:
    """Drop the items that fit, but for the first `keep` of them."""
    fitting = 0
    remaining = []
    for item in items:
        if fits(item, match, subject_of):
            fitting += 1
            if fitting > (keep or 0):
                continue
        remaining.append(item)
    del items[:]
    items.extend(remaining)


def repeat(items: Any, match: Match, subject_of: SubjectOf) -> None:
    """Append the items that fit, so that they come twice."""
    items.extend([item for item in items if fits(item, match, subject_of)])


def turn_back(message: Message, by_ns: int) -> None:
    """Make every time stamp in the message `by_ns` earlier; one that is not set stays so."""
    for field, value in message.ListFields():
        if field.name in _TIMES:
            setattr(message, field.name, max(1, value - by_ns))
            continue
        for part in _messages(value):
            turn_back(part, by_ns)


def _messages(value: Any) -> list[Message]:
    if isinstance(value, Message):
        return [value]
    if isinstance(value, str | bytes | int | float) or hasattr(value, "keys"):
        return []
    return [part for part in value if isinstance(part, Message)]


def fits(item: Any, match: Match, subject_of: SubjectOf) -> bool:
    """Whether a list item is one of those that `match` picks."""
    return match == Match() or any(match.fits(subject) for subject in _about(item, subject_of))


def _about(item: Any, subject_of: SubjectOf) -> list[Subject]:
    fields = item.DESCRIPTOR.fields_by_name
    if "repo_tags" in fields:
        names = (*item.repo_tags, *item.repo_digests, item.id)
        return [Subject(image=name) for name in names]
    if "attributes" in fields:
        return [subject_of(item.attributes.id)]
    return [subject_of(item.id if "id" in fields else item.pod_sandbox_id)]
