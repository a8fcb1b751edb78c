"""The containerd versions the suite can run, and the Debian suite that has each.

One image holds packages of one suite, so containerd, runc, CNI plugins and libc fit together. A
node whose containerd has another version than the one asked for is refused.
"""

from __future__ import annotations

import os
import re
from typing import Final

from msgspec import Struct

from kubelet_conformance.harness.containerd.docker_host import NodeError

VERSION_VARIABLE: Final = "REFKUBELET_CONTAINERD_VERSION"
DEFAULT_VERSION: Final = "1.6"


class Release(Struct, frozen=True):
    """One containerd minor version."""

    version: str
    """Major and minor, `1.7`."""
    suite: str
    """The Debian suite whose package it is."""
    config_version: int
    """Of config.toml: 2 with one CRI plugin, 3 (containerd 2.x) with one each for containers,
    images and streams."""
    build_script: str = ""
    """debootstrap's script, where a usual debootstrap has none of the suite's name."""

    def is_version(self, found: str) -> bool:
        """Whether a full version (`1.6.20~ds1`, `v2.1.9`) is one of this minor version."""
        return re.match(rf"v?{re.escape(self.version)}(\D|$)", found) is not None


RELEASES: Final = (
    Release("1.6", "bookworm", config_version=2),
    Release("1.7", "trixie", config_version=2),
    Release("2.1", "forky", config_version=3, build_script="sid"),
)
VERSIONS: Final = tuple(release.version for release in RELEASES)


def release_of(version: str | None = None) -> Release:
    """The release called `version`; None: what `REFKUBELET_CONTAINERD_VERSION` says, else 1.6.

    Raises: NodeError that lists the known versions.
    """
    source = "containerd version"
    if version is None:
        version, source = os.environ.get(VERSION_VARIABLE) or DEFAULT_VERSION, VERSION_VARIABLE
    for release in RELEASES:
        if release.version == version:
            return release
    raise NodeError(f"{source} {version!r} is not known; wanted {', '.join(VERSIONS)}")


def other_version(release: Release, where: str, found: str) -> str:
    """The text of the error for a containerd of another version than asked for, found at
    `where`."""
    return (
        f"{where} has containerd {found}, wanted {release.version}: choose another version, or "
        f"name a mirror of the time when {release.suite} had it (REFKUBELET_DEBIAN_MIRROR="
        "http://snapshot.debian.org/archive/debian/<date>)"
    )
