"""Which version of the API a CSI driver and this kubelet both speak (NODE-216.1). Pure.

Upstream: pkg/volume/csi/csi_plugin.go: validateVersions; apimachinery's util/version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kubeobjects.golang.strconv import quoted

MAJOR: Final = 1
_NUMBERS: Final = re.compile(r"\s*v?([0-9]+(?:\.[0-9]+)*)", re.ASCII)

Version = tuple[int, ...]


class VersionError(ValueError):
    """There is no version that can be used; the text is the kubelet's."""


def parse_version(text: str) -> Version:
    """The numbers at the begin of a version, two at least. Raises `VersionError`.

    >>> parse_version("v1.12.0-rc1")
    (1, 12, 0)
    """
    match = _NUMBERS.match(text)
    if match is None:
        raise VersionError(f"could not parse {quoted(text)} as version")
    numbers = match[1].split(".")
    if len(numbers) < 2:
        raise VersionError(f"illegal version string {quoted(text)}")
    if numbers[0].startswith("0") and numbers[0] != "0":
        component = f"{quoted(numbers[0])} in {quoted(text)}"
        raise VersionError(f"illegal zero-prefixed version component {component}")
    return tuple(map(int, numbers))


def highest_supported(versions: Sequence[str]) -> Version:
    """The highest of them that is 1.x. Raises `VersionError`.

    >>> highest_supported(["1.0.0", "1.2", "2.0.0"])
    (1, 2)
    """
    supported: list[Version] = []
    problem = "<nil>"
    for text in reversed(versions):
        try:
            version = parse_version(text)
        except VersionError as error:
            problem = str(error)
            continue
        if version[0] <= MAJOR:
            supported.append(version)
    if not supported:
        raise VersionError(
            f"could not find a highest supported version from versions ([{' '.join(versions)}]) "
            f"reported: {problem}"
        )
    highest = max(supported)
    if highest[0] != MAJOR:
        highest_text = shown_version(highest)
        raise VersionError(f"highest supported version reported is {highest_text}, must be v1.x")
    return highest


def shown_version(version: Version) -> str:
    """The version as a text.

    >>> shown_version((1, 2, 0))
    '1.2.0'
    """
    return ".".join(map(str, version))
