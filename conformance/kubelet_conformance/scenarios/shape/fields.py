"""The kinds of fields that scenarios have beside those of scripts (`fakecri.scripts.fields`).

For a type checker they are what they are read as; for the strict reader and for the JSON schema
also what may be written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from msgspec import Meta

from fakecri.cri.services import METHODS
from fakecri.csi.driver import METHODS as CSI_METHODS
from kubelet_conformance.registry import ID, RULE, Feature, Minor, minor_of
from kubelet_conformance.scenarios.shape.ranges import (
    NUMBER_PATTERN,
    Range,
    Wording,
    range_of,
    span_of,
    wording_of,
)
from kubeobjects.strict.errors import did_you_mean

_VERSION: Final = re.compile(r"\d{1,3}\.\d{1,3}(\.\d{1,3})?$")
_STATES: Final = ("True", "False", "Unknown")
_FEATURES: Final = {feature.name.lower(): feature for feature in Feature}


def _release(text: str) -> str:
    if not _VERSION.match(text):
        raise ValueError(f"wanted a version: 1.30 or 1.30.3; got {text!r}")
    return text


def _minor(text: str) -> Minor:
    minor = minor_of(_release(text))
    if minor is None or text.count(".") != 1:
        raise ValueError(f"wanted a minor version: 1.30; got {text!r}")
    return minor


def _case_id(text: str) -> str:
    if not ID.match(text):
        raise ValueError(f"wanted words of small letters and digits with dashes; got {text!r}")
    return text


def _rule(text: str) -> str:
    if not RULE.match(text):
        raise ValueError(f"wanted a rule, such as BACK-003 or BACK-003.2; got {text!r}")
    return text


def _feature(text: str) -> Feature:
    if text not in _FEATURES:
        features = ", ".join(_FEATURES)
        hint = did_you_mean(text, _FEATURES)
        raise ValueError(f"wanted one of: {features}; got {text!r}{hint}")
    return _FEATURES[text]


def _yes(given: bool) -> bool:
    if not given:
        raise ValueError("wanted true, or the word left out")
    return given


def _condition_state(text: str) -> str:
    if text in ("", "~", "null"):
        return ""
    if text not in _STATES:
        raise ValueError(f"wanted 'True', 'False', 'Unknown' or null; got {text!r}")
    return text


def _any_method(name: str) -> str:
    if name not in METHODS and name not in CSI_METHODS:
        hint = did_you_mean(name, (*METHODS, *CSI_METHODS))
        raise ValueError(f"neither the CRI nor a CSI driver has a method {name!r}{hint}")
    return name


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"wanted a regular expression, got {text!r}: {error}") from None
    return text


def _written(then: Any, wanted: str, description: str, **schema: Any) -> Any:
    """A scalar that is taken as it is written, whatever it looks like, and read by a function."""
    extra = {"then": then, "wanted": wanted, "as_written": True}
    return Annotated[
        str | int | float,
        Meta(description=description, extra=extra, extra_json_schema=schema or None),
    ]


Yes: TypeAlias = Annotated[
    bool, Meta(extra={"then": _yes, "wanted": "true"}, extra_json_schema={"const": True})
]
Anything: TypeAlias = Annotated[Any, Meta(description="anything")]

if TYPE_CHECKING:
    CaseId: TypeAlias = str
    RuleId: TypeAlias = str
    Release: TypeAlias = str
    MinorVersion: TypeAlias = Minor
    Need: TypeAlias = Feature
    Regex: TypeAlias = str
    AnyMethod: TypeAlias = str
    Number: TypeAlias = Range
    Span: TypeAlias = Range
    Words: TypeAlias = Wording
    ConditionState: TypeAlias = str
else:
    ConditionState = Annotated[
        str | bool | None,
        Meta(
            description="True, False, Unknown, or null: there is no such condition",
            extra={
                "then": _condition_state,
                "wanted": "'True', 'False', 'Unknown' or null",
                "as_written": True,
            },
            extra_json_schema={"enum": [*_STATES, "", None]},
        ),
    ]
    CaseId = _written(_case_id, "an ID", "words of small letters and digits with dashes: 104648-b")
    RuleId = Annotated[str, Meta(extra={"then": _rule, "wanted": "a rule, such as BACK-003.2"})]
    Release = _written(_release, "a version", "1.30 or 1.30.3")
    MinorVersion = _written(_minor, "a minor version", "1.30")
    Need = Annotated[
        str,
        Meta(
            extra={"then": _feature, "wanted": "a feature"},
            extra_json_schema={"enum": list(_FEATURES)},
        ),
    ]
    AnyMethod = Annotated[
        str,
        Meta(
            description="of the CRI, or of CSI drivers",
            extra={"then": _any_method, "wanted": "a method"},
            extra_json_schema={"enum": sorted({*METHODS, *CSI_METHODS})},
        ),
    ]
    Regex = Annotated[str, Meta(extra={"then": _regex, "wanted": "a regular expression"})]
    Number = _written(
        range_of, "a number: 2, >=2, <2 or 2..4", "2, >=2, <2 or 2..4", pattern=NUMBER_PATTERN
    )
    Span = _written(span_of, "times: 10s..15s, >=2s or <1m", "10s..15s, >=2s or <1m")
    Words = Annotated[
        str | list[str],
        Meta(
            description="a text, in which * stands for any text, or a list of such texts",
            extra={"then": wording_of, "wanted": "a text or a list of texts"},
        ),
    ]
