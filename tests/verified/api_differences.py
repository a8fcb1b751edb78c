"""Where the fake API server may differ from a kube-apiserver, and why. Everything else must be
equal. A row without a good reason does not belong here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field that is not compared. `method`: operations, such as `create pods`; it and `path`
    may be patterns."""

    method: str
    path: str
    reason: str

    def __str__(self) -> str:
        return f"field `{self.path}`"


@dataclass(frozen=True, slots=True)
class TextRow:
    """A message (pattern) of a refusal that the fake says in other words; code and reason are
    compared."""

    method: str
    pattern: str
    reason: str

    def __str__(self) -> str:
        return f"text `{self.pattern}`"


@dataclass(frozen=True, slots=True)
class CodeRow:
    """Two codes that count as the same; `pattern`: of the real one's message."""

    method: str
    real: int
    fake: int
    pattern: str
    reason: str

    def __str__(self) -> str:
        return f"{self.real}; the fake: {self.fake} (`{self.pattern}`)"


AnyRow: TypeAlias = FieldRow | TextRow | CodeRow

GO: Final = "the words are those of Go's decoder"
FIELDS: Final[tuple[FieldRow, ...]] = (
    FieldRow(
        "table *",
        "columnDefinitions[[][]].description",
        "descriptions of columns are upstream's texts, which are not copied",
    ),
    FieldRow(
        "token serviceaccounts",
        "metadata.managedFields",
        "a TokenRequest is answered and not kept, so nobody can own a part of it",
    ),
)
TEXTS: Final[tuple[TextRow, ...]] = (
    TextRow(
        "create services",
        "*is not in the valid range. The range of valid IPs is*",
        "a dry run of the API server asks another allocator, which has words of its own",
    ),
    TextRow("*", "*json: cannot unmarshal * Go value of type *", GO),
    TextRow("*", "invalid continue token: *illegal base64 data *", GO),
    TextRow("*", "*parsing time *", GO),
    TextRow("*", "*json parse error*", GO),
    TextRow("*", "failed to create typed patch object *", GO),
    TextRow("*", "failed to convert new object *", GO),
    TextRow("*", '*"" is invalid: patch: Invalid value: *', "the whole object is in the message"),
)
NO_PRIORITIES: Final = (
    "the admission plug-in Priority is not played: a test gives a pod what priority it likes"
)
NOT_ADMITTED: Final = (
    ("*priority admission controller*", NO_PRIORITIES),
    ("*no PriorityClass with name*", NO_PRIORITIES),
    (
        '*RuntimeClass "*" not found',
        "the admission plug-in RuntimeClass is not played: the kubelet finds that there is none",
    ),
    (
        "*Pod Overhead set without *",
        "the admission plug-in RuntimeClass is not played: a test gives what overhead it likes",
    ),
)
CODES: Final[tuple[CodeRow, ...]] = (
    *(CodeRow("* pods", 403, 201, pattern, reason) for pattern, reason in NOT_ADMITTED),
    *(CodeRow("create pods", 403, 409, pattern, reason) for pattern, reason in NOT_ADMITTED),
)
