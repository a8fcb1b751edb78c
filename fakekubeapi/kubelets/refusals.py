"""What the API server makes of a kubelet's refusal to give a log. Pure.

Upstream: GenericHttpResponseChecker; apimachinery: NewGenericServerResponse.
"""

from __future__ import annotations

from typing import Final

from fakekubeapi.errors import StatusError, bad_request

_RESOURCE: Final = "pods/log"
_WORDS: Final = {
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: (
        "TooManyRequests",
        "the server has received too many requests and has asked us to try again later",
    ),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be "
        "processing the request",
    ),
}
_OWN_WORDS: Final = {403: "Forbidden", 406: "NotAcceptable", 415: "UnsupportedMediaType"}
"""Where the kubelet's words are the message."""


def refusal_of_log(status: int, pod: str, text: str) -> StatusError:
    """The refusal that the client gets for the kubelet's answer `status` with that text."""
    if status == 400:
        return bad_request(text)
    if status == 500:
        words = f"Internal error occurred: {text}"
        return StatusError(500, words, details={"causes": [{"message": text}]})
    if status in _OWN_WORDS:
        reason, words = _OWN_WORDS[status], text
    elif status in _WORDS:
        reason, words = _WORDS[status]
    elif status > 500:
        reason = "InternalError"
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        words = f'an error on the server ("{quoted}") has prevented the request from succeeding'
    else:
        reason = ""
        words = (
            f"the server responded with the status code {status} but did not return more "
            "information"
        )
    details = {"name": pod, "kind": _RESOURCE}
    return StatusError(status, f"{words} ( {_RESOURCE} {pod})", reason=reason, details=details)
