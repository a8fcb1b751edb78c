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
    before: str = ""
    """The row holds for kube-apiservers before that minor; "": for all."""

    def __str__(self) -> str:
        return f"field `{self.path}`"


@dataclass(frozen=True, slots=True)
class TextRow:
    """A message (pattern) of a refusal that the fake says in other words; code and reason are
    compared."""

    method: str
    pattern: str
    reason: str
    before: str = ""

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
    before: str = ""

    def __str__(self) -> str:
        return f"{self.real}; the fake: {self.fake} (`{self.pattern}`)"


AnyRow: TypeAlias = FieldRow | TextRow | CodeRow


def applies(row: AnyRow, minor: str) -> bool:
    """Whether a row holds for a kube-apiserver of that minor ("1.34"; "": the fake's own)."""
    return not row.before or before(row.before, minor)


def before(first: str, minor: str) -> bool:
    """Whether a server of that minor ("": the fake's own) is older than the minor `first`."""
    return minor != "" and _number(minor) < _number(first)


def of_1_36(what: str, body: object) -> bool:
    """Whether a request makes an object on servers of 1.36 that differs for good from what older
    ones make of it: they drop the restart policy of plain containers and the labels of a binding,
    take any policy for init containers, and resize more than CPU and memory."""
    text = str(body)
    if what == "bind pods":
        return "'labels'" in text
    if what == "resize pods":
        return "ephemeral-storage" in text
    spec = body.get("spec") if isinstance(body, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if isinstance(containers, list) and any("restartPolicy" in each for each in containers):
        return True
    return "'initContainers'" in text and "'restartPolicy': 'Wrong'" in text


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])


OLDER: Final = "the types are those of the minor, what the server does with them is of 1.36"

ORDER: Final = "Go walks over a map in no order, so that the causes of two bad keys change places"
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
    FieldRow("table serviceaccounts", "columnDefinitions", OLDER, before="1.36"),
    FieldRow("update persistentvolumeclaims", "details.causes", OLDER, before="1.36"),
    FieldRow("table serviceaccounts", "rows[[][]].cells", OLDER, before="1.36"),
)
TEXTS: Final[tuple[TextRow, ...]] = (
    TextRow(
        "create services",
        "*is not in the valid range. The range of valid IPs is*",
        "a dry run of the API server asks another allocator, which has words of its own",
    ),
    TextRow("*configmaps", "*: [[]data[[]*, data[[]*", ORDER),
    TextRow("*secrets", "*: [[]data[[]*, data[[]*", ORDER),
    TextRow("*", "*json: cannot unmarshal * Go value of type *", GO),
    TextRow("*", "invalid continue token: *illegal base64 data *", GO),
    TextRow("*", "*parsing time *", GO),
    TextRow("*", "*json parse error*", GO),
    TextRow("*", "failed to create typed patch object *", GO),
    TextRow("*", "failed to convert new object *", GO),
    TextRow("create pods", "*may not be set for init containers without *", OLDER, before="1.36"),
    TextRow("*", "*must be no more than 63 characters*", OLDER, before="1.36"),
    TextRow("* pods", "*must specify one of: `fieldRef`, *", OLDER, before="1.36"),
    TextRow("create services", "*a DNS-1035 label must consist of *", OLDER, before="1.36"),
    TextRow("resize pods", "*Limit must be set for non overcommitable *", OLDER, before="1.36"),
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
    *(CodeRow("create pods", 403, 422, pattern, reason) for pattern, reason in NOT_ADMITTED),
    CodeRow("delete*", 500, 400, "json: cannot unmarshal *", OLDER, before="1.36"),
)
