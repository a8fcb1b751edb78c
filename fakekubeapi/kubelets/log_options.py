"""The query of a request for a container's log (PodLogOptions), and what the kubelet is asked.
Pure.

Upstream: pkg/registry/core/pod/strategy.go: LogLocation; ValidatePodLogOptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from fakekubeapi.errors import bad_request, invalid
from fakekubeapi.requests.parameters import is_true, whole_number
from kubeobjects.causes import Cause, forbidden_field, invalid_value, unsupported_value

_SWITCHES: Final = ("follow", "previous", "timestamps")
_NUMBERS: Final = ("sinceSeconds", "tailLines", "limitBytes")
_STREAMS: Final = ("All", "Stderr", "Stdout")
_POSITIVE: Final = "must be greater than 0"


def log_query(params: Mapping[str, str], pod: str) -> list[tuple[str, str]]:
    """The query for the kubelet, sorted by name. Raises: StatusError 400 for a value that is not a
    number or not a time, 422 for values that are not allowed."""
    numbers = {name: whole_number(params, name) for name in _NUMBERS if params.get(name)}
    query = {name: str(number) for name, number in numbers.items()}
    query |= {name: "true" for name in _SWITCHES if is_true(params.get(name))}
    if since := params.get("sinceTime"):
        query["sinceTime"] = _time(since)
    stream = params.get("stream") or "All"
    if causes := _causes(numbers, since=bool(since), stream=stream):
        raise invalid("PodLogOptions", "", pod, causes)
    query["stream"] = stream
    return sorted(query.items())


def _causes(numbers: Mapping[str, int], *, since: bool, stream: str) -> list[Cause]:
    causes: list[Cause] = []
    if numbers.get("tailLines", 0) < 0:
        text = "must be greater than or equal to 0"
        causes.append(invalid_value("tailLines", numbers["tailLines"], text))
    if numbers.get("limitBytes", 1) < 1:
        causes.append(invalid_value("limitBytes", numbers["limitBytes"], _POSITIVE))
    if since and "sinceSeconds" in numbers:
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        causes.append(forbidden_field("", text))
    elif numbers.get("sinceSeconds", 1) < 1:
        causes.append(invalid_value("sinceSeconds", numbers["sinceSeconds"], _POSITIVE))
    if stream not in _STREAMS:
        causes.append(unsupported_value("stream", stream, _STREAMS))
    if stream != "All" and "tailLines" in numbers:
        text = "`tailLines` and specific `stream` are mutually exclusive for now"
        causes.append(forbidden_field("", text))
    return causes


def _time(text: str) -> str:
    """An RFC 3339 time in UTC and whole seconds, as upstream passes it on."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise bad_request(f'parsing time "{text}": cannot parse it as RFC 3339') from None
    zone = time.strftime("%z")
    utc_time = time.replace(microsecond=0, tzinfo=None).isoformat()
    return utc_time + ("Z" if zone in ("", "+0000") else f"{zone[:3]}:{zone[3:]}")
