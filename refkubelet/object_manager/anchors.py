"""Reads trust anchors out of bundles, and tells which bundles a selector selects (NODE-213). Pure.

Upstream: pkg/kubelet/clustertrustbundle: normalizeTrustAnchors; LabelSelectorAsSelector.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from lightkube.models.meta_v1 import LabelSelector, LabelSelectorRequirement

_BLOCK: Final = re.compile(
    r"^-----BEGIN (?P<kind>[^-\n]+)-----\r?\n(?P<body>[A-Za-z0-9+/=\s]*?)^-----END (?P=kind)-----",
    re.MULTILINE,
)
_LINE: Final = 64
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def anchors_of(bundles: Iterable[str], shuffle: Callable[[list[bytes]], None]) -> bytes:
    """The certificates of all bundles, each once, as PEM blocks. `shuffle` puts the sorted list
    into an order on which nobody can rely."""
    blocks = sorted({block for text in bundles for block in _blocks(text)})
    shuffle(blocks)
    return b"".join(map(_pem, blocks))


def _blocks(text: str) -> Iterator[bytes]:
    """The content of each PEM block; what is no block, or cannot be decoded, is left out."""
    for match in _BLOCK.finditer(text):
        try:
            yield base64.b64decode("".join(match["body"].split()), validate=True)
        except binascii.Error:
            continue


def _pem(data: bytes) -> bytes:
    text = base64.b64encode(data)
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return b"\n".join([b"-----BEGIN CERTIFICATE-----", *lines, b"-----END CERTIFICATE-----", b""])


def selector_problem(selector: LabelSelector | None) -> str | None:
    """Why the selector is not valid; None: it is."""
    for rule in (selector.matchExpressions if selector is not None else None) or ():
        if rule.operator not in _OPERATORS:
            return f'"{rule.operator}" is not a valid label selector operator'
    return None


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether the labels match all that the selector says; None selects nothing, an empty one
    everything."""
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in (selector.matchLabels or {}).items())
    return equal and all(_matches(rule, labels) for rule in selector.matchExpressions or ())


def _matches(one: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    values = one.values or ()
    match one.operator:
        case "In":
            return one.key in labels and labels[one.key] in values
        case "NotIn":
            return labels.get(one.key) not in values or one.key not in labels
        case "Exists":
            return one.key in labels
    return one.key not in labels
