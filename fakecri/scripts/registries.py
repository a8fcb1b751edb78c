"""Registries made of a table: what a pull of which image meets. Names may be patterns."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from fakecri.core.images import Registry, RegistryImage, parse_reference


def registry_with(table: Mapping[str, RegistryImage | None]) -> Registry:
    """A registry that has every image, but for those in the table: they are as it says, or, with
    None, not there.

    A key is a reference in any form, or a pattern over normalised ones (`docker.io/library/*`);
    exact references count before patterns, patterns in their order.
    Raises: ValueError for a key that is no reference.
    """
    exact = {str(parse_reference(key)): image for key, image in table.items() if not _open(key)}
    patterns = [(key, image) for key, image in table.items() if _open(key)]

    def look_up(reference: str) -> RegistryImage | None:
        if reference in exact:
            return exact[reference]
        for pattern, image in patterns:
            if fnmatchcase(reference, pattern):
                return image
        return RegistryImage()

    return look_up


def _open(key: str) -> bool:
    return "*" in key or "?" in key
