"""What is wrong with volumes whose data are on the node, in an image, or found by the API. Pure.

A kind has a function of its source and its path; most only look for fields that have to be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubeobjects.causes import Cause, forbidden_field, invalid_value, required
from kubeobjects.csi_sources import driver_name_causes
from kubeobjects.names import subdomain_problems
from kubeobjects.pods.common.checks import (
    Object,
    descending_path,
    needed,
    no_steps_back,
    optional_word,
    word,
)
from kubeobjects.quantity import parse_nano

_HOST_TYPES: Final = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File"),
    *("FileOrCreate", "Socket"),
)
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")


def fields_needed(*fields: str) -> Callable[[Object, str], Iterator[Cause]]:
    """A check that these fields are there, and not empty."""

    def check(source: Object, path: str) -> Iterator[Cause]:
        for field in fields:
            yield from needed(source, field, path)

    return check


def image_causes(source: Object, path: str, *, static: bool) -> Iterator[Cause]:
    """What is wrong with a volume of the files of an image. Of a kubelet's own pod (`static`),
    nobody asks which image."""
    if not static:
        yield from needed(source, "reference", path)
    yield from word(source.get("pullPolicy"), f"{path}.pullPolicy", PULL_POLICIES)


def _empty_dir(source: Object, path: str) -> Iterator[Cause]:
    limit = source.get("sizeLimit")
    if limit is not None and parse_nano(str(limit)) < 0:
        text = "SizeLimit field must be a valid resource quantity"
        yield forbidden_field(f"{path}.sizeLimit", text)


def _host_path(source: Object, path: str) -> Iterator[Cause]:
    if not source.get("path"):
        yield required(f"{path}.path")
        return
    yield from no_steps_back(source["path"], f"{path}.path")
    yield from optional_word(source.get("type"), f"{path}.type", _HOST_TYPES)


def _git_repo(source: Object, path: str) -> Iterator[Cause]:
    yield from needed(source, "repository", path)
    yield from descending_path(source.get("directory") or "", f"{path}.directory")


def _csi(source: Object, path: str) -> Iterator[Cause]:
    yield from driver_name_causes(source.get("driver") or "", f"{path}.driver")
    secret: Mapping[str, Any] | None = source.get("nodePublishSecretRef")
    if secret is None:
        return
    name = secret.get("name") or ""
    if not name:
        yield required(f"{path}.nodePublishSecretRef.name")
        return
    for problem in subdomain_problems(name):
        yield invalid_value(f"{path}.name", name, problem)


SOURCES: Final[Mapping[str, Callable[[Object, str], Iterator[Cause]]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "persistentVolumeClaim": fields_needed("claimName"),
    "csi": _csi,
}
