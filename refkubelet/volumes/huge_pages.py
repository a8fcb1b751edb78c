"""The page size of an emptyDir of huge pages (NODE-203). Pure.

Upstream: pkg/volume/emptydir/empty_dir.go: getPageSizeMountOption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubeobjects.quantity import parse_integer
from kubeobjects.resource_names import HUGE_PAGES
from refkubelet.model.objects import Pod
from refkubelet.model.resources import container_requests, pod_level

MEDIUM: Final = "HugePages"
MEDIUM_PREFIX: Final = "HugePages-"


def is_huge_pages(medium: str) -> bool:
    """Whether the medium of an emptyDir is huge pages of any size."""
    return medium == MEDIUM or medium.startswith(MEDIUM_PREFIX)


def huge_page_bytes(medium: str, pod: Pod) -> int:
    """The size of the pages: that of the medium, else of the pages that the pod requests. Raises
    ValueError, in upstream's words, if the pod requests none, or several sizes."""
    requested = list(dict.fromkeys(_requested(pod)))
    if medium == MEDIUM:
        if len(requested) > 1:
            raise ValueError(
                f"medium: {medium} can't be used if container requests multiple huge page sizes"
            )
    else:
        page_size = parse_integer(medium.removeprefix(MEDIUM_PREFIX))
        requested = [size for size in requested if size == page_size]
    if not requested:
        raise ValueError(
            f"medium {medium}: hugePages storage requested, but there is no resource request for "
            "huge pages"
        )
    return requested[0]


def _requested(pod: Pod) -> Iterator[int]:
    yield from _sizes(pod_level(pod, "requests"))
    for container in (*pod.spec.containers, *(pod.spec.initContainers or ())):
        yield from _sizes(container_requests(container))


def _sizes(names: Iterable[str]) -> Iterator[int]:
    for name in names:
        if name.startswith(HUGE_PAGES):
            yield parse_integer(name.removeprefix(HUGE_PAGES))
