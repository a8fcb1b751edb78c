"""How the API server refuses a request: one exception, rendered as a `metav1.Status`.

Codes, reasons and the fixed parts of the messages are those of a kube-apiserver, since clients
compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubeobjects.causes import Cause

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiUnreachable(ConnectionError):
    """The server is down (`FakeApi.down`) and does not answer; to an HTTP client it looks like a
    refused or broken connection."""


class StatusError(Exception):
    """A refused request: HTTP status `code`, `reason` (a word for programs, such as NotFound; None:
    the usual one of that status), `message`, and `details` as in a Status, if any."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = _REASONS.get(code, "Unknown") if reason is None else reason
        self.details = details

    def body(self) -> dict[str, Any]:
        """The `metav1.Status` object of this error."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if not self.reason:
            del status["reason"]
        if self.details is not None:
            status["details"] = self.details
        return status


def unprocessable() -> StatusError:
    """422 for a JSON patch that does not apply; the API server does not say why."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, message, details={})


def _details(name: str, group: str, kind: str) -> dict[str, Any]:
    parts = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in parts.items() if value}


def not_found(resource: str, name: str) -> StatusError:
    """404: there is no such object. `resource` is qualified: `pods`, `leases.coordination.k8s.io`;
    so it is in `already_exists` and `conflict`."""
    plural, _, group = resource.partition(".")
    return StatusError(404, f'{resource} "{name}" not found', details=_details(name, group, plural))


NOT_HERE: Final = (
    "it has what kubelets and their tests use (kubectl api-resources), and no custom resources; "
    "for others use a real API server, such as setup-envtest brings (kube-apiserver and etcd): "
    "refkubelet joins it in the same way"
)
"""What to do about a kind that there is not."""


def no_such_kind(resource: str, api_version: str) -> StatusError:
    """404: a path of a resource that others have, as `deployments` of `apps/v1`."""
    text = f"fakekubeapi has no {resource} of {api_version}: {NOT_HERE}"
    return StatusError(404, text, details={})


def already_exists(
    resource: str, name: str, *, leaving: bool = False, generated: bool = False
) -> StatusError:
    """409 AlreadyExists: an object of that name is there; `leaving`: it is being deleted;
    `generated`: the client wanted a name that the server makes, and may have given one, too."""
    plural, _, group = resource.partition(".")
    message, details = f'{resource} "{name}" already exists', _details(name, group, plural)
    if generated:
        message += ", the server was not able to generate a unique name for the object"
        details["retryAfterSeconds"] = 1
    elif leaving:
        message = f"object is being deleted: {message}"
    return StatusError(409, message, reason="AlreadyExists", details=details)


def conflict(resource: str, name: str, why: str) -> StatusError:
    """409 Conflict: the object is not as the client supposes; `why` ends the message."""
    plural, _, group = resource.partition(".")
    return StatusError(
        409,
        f'Operation cannot be fulfilled on {resource} "{name}": {why}',
        details=_details(name, group, plural),
    )


def precondition_failed(
    resource: str, name: str, field: str, wanted: str, found: str
) -> StatusError:
    """409 Conflict: the object has another `field`, UID or ResourceVersion, than the client
    wants."""
    return conflict(
        resource,
        name,
        f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}",
    )


def other_uid(resource: str, name: str, *, place: str, wanted: str, found: str) -> StatusError:
    """409 Conflict: an update is of another object, with the UID `wanted`, which had the same name.
    The storage of an API server finds that, which keeps the object at `place`."""
    return conflict(
        resource,
        name,
        f"StorageError: invalid object, Code: 4, Key: {place}, "
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: {wanted}, UID in object meta: {found}",
    )


def forbidden(resource: str, name: str, why: str) -> StatusError:
    """403: an admission plug-in, or the access table, does not allow it; `why` ends the message."""
    plural, _, group = resource.partition(".")
    message = f'{resource} "{name}" is forbidden: {why}'
    return StatusError(403, message, details=_details(name, group, plural))


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """422 with one cause per wrong field. `kind` is `Pod`, `Node`, ..., `group` its API group."""
    texts = list(dict.fromkeys(cause.text for cause in causes))
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = _details(name, group, kind)
    details["causes"] = [
        {"reason": cause.kind, "message": cause.message, "field": cause.field} for cause in causes
    ]
    qualified = f"{kind}.{group}" if group else kind
    return StatusError(422, f'{qualified} "{name}" is invalid: {listed}', details=details)


def bad_request(message: str) -> StatusError:
    """400: the request cannot be understood."""
    return StatusError(400, message)


def expired(wanted: int, oldest: int) -> StatusError:
    """410: changes up to revision `oldest` are forgotten, so the client, which wants those after
    `wanted`, has to list again."""
    return StatusError(410, f"too old resource version: {wanted} ({oldest})", reason="Expired")


def too_large_version(wanted: int, newest: int) -> StatusError:
    """504: the client knows of a revision that the server has not reached, and has waited for."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        504,
        f"Timeout: Too large resource version: {wanted}, current: {newest}",
        details={"causes": [cause], "retryAfterSeconds": 1},
    )


def unsupported_media_type(allowed: Sequence[str]) -> StatusError:
    """415: the body is of a media type that is not taken here."""
    return StatusError(
        415,
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(allowed),
    )
