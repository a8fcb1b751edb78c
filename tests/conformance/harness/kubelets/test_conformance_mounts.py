"""The mounts that a kubelet leaves are found, and no others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kubelet_conformance.harness.kubelets.mounts import left_to_unmount, mounts_below

TABLE = """\
21 1 253:0 / / rw,relatime - ext4 /dev/vda rw
30 21 253:0 /tmp/kc-1/case-a/kubelet /tmp/kc-1/case-a/kubelet rw - ext4 /dev/vda rw
31 30 0:40 / /tmp/kc-1/case-a/kubelet/pods/u/volumes/secret\\040one rw - tmpfs tmpfs rw
32 21 253:0 /tmp/kc-1/case-ab/kubelet /tmp/kc-1/case-ab/kubelet rw - ext4 /dev/vda rw
"""


def test_mounts_below_a_directory_come_innermost_first_and_alone() -> None:
    found = mounts_below(TABLE.splitlines(), Path("/tmp/kc-1/case-a"))
    root = Path("/tmp/kc-1/case-a/kubelet")
    assert found == [root / "pods/u/volumes/secret one", root]


def test_a_kubelet_that_mounted_nothing_leaves_nothing() -> None:
    assert mounts_below(TABLE.splitlines(), Path("/tmp/kc-2")) == []


def test_mounts_that_were_there_before_stay_and_those_on_top_of_them_go() -> None:
    a, b = Path("/t/a"), Path("/t/b")
    assert left_to_unmount([b, a, a], Counter([a])) == [b, a]
    assert left_to_unmount([a], Counter([a, b])) == []
