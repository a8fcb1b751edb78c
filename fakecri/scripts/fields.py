"""The kinds of fields that scripts and other files have: seconds, bytes, names, ...

For a type checker they are what they are read as; for `struct_reader` and for the JSON schema also
what may be written.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Meta

from fakecri.core.image_store.references import parse_reference
from fakecri.cri.services import METHODS, require_method
from fakecri.errors import status_code
from fakecri.scripts.units import BYTES_PATTERN, MOST_S, SECONDS_PATTERN, bytes_of, seconds_of


def _method(name: str) -> str:
    require_method(name)
    return name


def _reference(text: str) -> str:
    try:
        parse_reference(text)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    return text


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise ValueError(f"wanted an IP address, got {text!r}") from None


def _pattern(text: str) -> str:
    return text if "*" in text or "?" in text else _reference(text)


def _words(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(given.split()) if isinstance(given, str) else given


def _text(then: Any, wanted: str, **schema: Any) -> Any:
    """A text that a function looks at."""
    extra = {"then": then, "wanted": wanted}
    return Annotated[str, Meta(extra=extra, extra_json_schema=schema or None)]


Count: TypeAlias = Annotated[int, Meta(ge=1)]
Amount: TypeAlias = Annotated[int, Meta(ge=0)]
CallLimit: TypeAlias = Annotated[int, Meta(ge=1, le=10**9)]
ExitCode: TypeAlias = Annotated[int, Meta(ge=0, le=255)]
Port: TypeAlias = Annotated[int, Meta(ge=0, le=65535)]
Name: TypeAlias = Annotated[str, Meta(description="a name or a pattern: web, web*")]

if TYPE_CHECKING:
    Seconds: TypeAlias = float
    Bytes: TypeAlias = int
    Text: TypeAlias = str
    Words: TypeAlias = tuple[str, ...]
    Method: TypeAlias = str
    Address: TypeAlias = str
    Image: TypeAlias = str
    ImagePattern: TypeAlias = str
    StatusCode: TypeAlias = str
else:
    Seconds = Annotated[
        Annotated[float, Meta(ge=0, le=MOST_S, extra={"wanted": "seconds from 0 to 1e9"})]
        | Annotated[str, Meta(extra_json_schema={"pattern": SECONDS_PATTERN})],
        Meta(
            description="seconds: 2, or with a unit: 1.5s, 500ms, 5m, 1h",
            extra={"then": seconds_of, "wanted": "seconds: 2, 1.5s, 500ms, 5m or 1h"},
        ),
    ]
    Bytes = Annotated[
        Annotated[int, Meta(ge=0, extra={"wanted": "bytes from 0"})]
        | Annotated[str, Meta(extra_json_schema={"pattern": BYTES_PATTERN})],
        Meta(
            description="bytes: 4096, or with a unit: 64Mi, 1Gi",
            extra={"then": bytes_of, "wanted": "bytes: 4096, 64Mi, 1Gi, ..."},
        ),
    ]
    Text = Annotated[str | int | float, Meta(extra={"as_written": True})]
    Words = Annotated[
        str | tuple[Text, ...],
        Meta(
            description="a command: its words in a list, or in a text",
            extra={"then": _words, "wanted": "a text or a list of texts"},
        ),
    ]
    Method = _text(_method, "the name of a CRI method", enum=sorted(METHODS))
    Address = _text(_address, "an IP address")
    Image = _text(_reference, "an image, such as localhost/busybox:1")
    ImagePattern = _text(_pattern, "an image or a pattern")
    StatusCode = _text(
        lambda text: str(status_code(text).name), "a gRPC status code, such as UNAVAILABLE"
    )
