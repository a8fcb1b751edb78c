"""Which pages an emptyDir of huge pages has (NODE-203.2)."""

from __future__ import annotations

from typing import Any

import pytest
from pods import container, make_pod

from refkubelet.model.objects import Pod
from refkubelet.volumes.huge_pages import huge_page_bytes, is_huge_pages

MIB = 1 << 20


def requesting(*names: str) -> dict[str, Any]:
    amounts = dict.fromkeys(names, "8Mi")
    return {"resources": {"requests": amounts, "limits": amounts}}


def pod(*names: str, init: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> Pod:
    return make_pod(
        container("c", **requesting("cpu", *names)),
        init=[container("i", **requesting(*init))],
        **requesting(*whole),
    )


@pytest.mark.parametrize(
    ("medium", "wanted"),
    [
        *(("HugePages", True), ("HugePages-2Mi", True), ("HugePages-", True)),
        *(("", False), ("Memory", False), ("HugePagesX", False)),
    ],
)
def test_media_of_huge_pages_NODE_203(medium: str, wanted: bool) -> None:
    assert is_huge_pages(medium) is wanted


@pytest.mark.parametrize(
    ("medium", "of", "wanted"),
    [
        ("HugePages", pod("hugepages-2Mi"), 2 * MIB),
        ("HugePages", pod(init=("hugepages-1Gi",)), 1024 * MIB),
        ("HugePages", pod(whole=("hugepages-4Mi",)), 4 * MIB),
        ("HugePages", pod("hugepages-2Mi", init=("hugepages-2Mi",)), 2 * MIB),
        ("HugePages-2Mi", pod("hugepages-1Gi", "hugepages-2Mi"), 2 * MIB),
        ("HugePages-2048Ki", pod("hugepages-2Mi"), 2 * MIB),
    ],
)
def test_the_size_is_the_mediums_or_the_requests_NODE_203(
    medium: str, of: Pod, wanted: int
) -> None:
    assert huge_page_bytes(medium, of) == wanted


NONE = "medium {}: hugePages storage requested, but there is no resource request for huge pages"


@pytest.mark.parametrize(
    ("medium", "of", "words"),
    [
        ("HugePages", pod(), NONE.format("HugePages")),
        ("HugePages-2Mi", pod(), NONE.format("HugePages-2Mi")),
        ("HugePages-2Mi", pod("hugepages-1Gi"), NONE.format("HugePages-2Mi")),
        *(
            (
                "HugePages",
                several,
                "medium: HugePages can't be used if container requests multiple huge page sizes",
            )
            for several in (
                pod("hugepages-1Gi", "hugepages-2Mi"),
                pod("hugepages-1Gi", init=("hugepages-2Mi",)),
            )
        ),
    ],
)
def test_pages_that_nothing_requests_or_that_are_not_clear_NODE_203(
    medium: str, of: Pod, words: str
) -> None:
    with pytest.raises(ValueError) as caught:
        huge_page_bytes(medium, of)
    assert str(caught.value) == words
