"""Names of cgroups with both drivers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods import make_pod

from refkubelet.model.cgroups.names import (
    CgroupNameError,
    cgroup_path,
    node_cgroup,
    parse_path,
    pod_cgroup,
    pod_uid,
    pod_word,
    words_of,
)

WORDS = st.lists(
    st.text("abcdefgh0123456789-", min_size=1).filter(lambda w: w.strip("-") == w),
    min_size=1,
    max_size=5,
).map(tuple)


@pytest.mark.parametrize(
    ("qos", "uid", "cgroupfs", "systemd"),
    [
        ("Guaranteed", "1-2", "/kubepods/pod1-2", "/kubepods.slice/kubepods-pod1_2.slice"),
        (
            "Burstable",
            "ab",
            "/kubepods/burstable/podab",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab.slice",
        ),
        (
            "BestEffort",
            "1-2-3",
            "/kubepods/besteffort/pod1-2-3",
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2_3.slice",
        ),
    ],
)
def test_paths_of_pods_CG_010_CG_011(qos: str, uid: str, cgroupfs: str, systemd: str) -> None:
    group = pod_cgroup(node_cgroup("/"), make_pod(uid=uid, status={"qosClass": qos}))
    assert cgroup_path(group, "cgroupfs") == cgroupfs
    assert cgroup_path(group, "systemd") == systemd


@pytest.mark.parametrize(
    ("root", "cgroupfs", "systemd"),
    [
        ("", "/kubepods", "/kubepods.slice"),
        ("/", "/kubepods", "/kubepods.slice"),
        ("/a", "/a/kubepods", "/a.slice/a-kubepods.slice"),
        ("/a/b-c", "/a/b-c/kubepods", "/a.slice/a-b_c.slice/a-b_c-kubepods.slice"),
    ],
)
def test_the_root_comes_first_CG_011(root: str, cgroupfs: str, systemd: str) -> None:
    assert cgroup_path(node_cgroup(root), "cgroupfs") == cgroupfs
    assert cgroup_path(node_cgroup(root), "systemd") == systemd


@pytest.mark.parametrize("uid", ["a_b", "a/b"])
def test_uids_that_could_be_mistaken_are_refused_CG_011(uid: str) -> None:
    with pytest.raises(CgroupNameError, match=f"invalid character in pod UID '{uid}'"):
        pod_word(uid)


@given(WORDS, st.sampled_from(["cgroupfs", "systemd"]))
def test_a_path_leads_back_to_its_name_CG_010(name: tuple[str, ...], driver: str) -> None:
    assert parse_path(cgroup_path(name, driver), driver) == name


@given(WORDS)
def test_every_level_of_a_slice_is_a_directory_CG_010(name: tuple[str, ...]) -> None:
    parts = cgroup_path(name, "systemd").split("/")[1:]
    assert len(parts) == len(name)
    for n, part in enumerate(parts):
        assert parse_path("/" + "/".join(parts[: n + 1]), "systemd") == name[: n + 1]
        assert part.endswith(".slice")


@pytest.mark.parametrize(
    ("path", "name"),
    [("/", ("/",)), ("", (".",)), ("/system.slice", ("system",)), ("/a/.slice", ("",))],
)
def test_other_slices_have_names_too_CG_010(path: str, name: tuple[str, ...]) -> None:
    assert parse_path(path, "systemd") == name


@pytest.mark.parametrize(
    ("word", "uid"),
    [("pod12-34", "12-34"), ("pod", ""), ("burstable", None), ("podpod", None), ("xpod1", "1")],
)
def test_whose_group_it_is_CG_043(word: str, uid: str | None) -> None:
    assert pod_uid(word) == uid


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ((), "/"),
        (("a", "", "b"), "/a/b"),
        (("a", "..", "b"), "/b"),
        (("..", "b"), "/../b"),
        (("a", "."), "/a"),
        (("a", ".."), "/."),
    ],
)
def test_paths_are_cleaned_with_cgroupfs_CG_010(words: tuple[str, ...], path: str) -> None:
    assert cgroup_path(words, "cgroupfs") == path


def test_every_slash_parts_two_words_CG_010() -> None:
    assert words_of("/a//b/") == ("a", "", "b", "")


@pytest.mark.parametrize("words", [("a", "", "b"), ("a", ""), ("/",)])
def test_no_slice_has_an_empty_word_CG_010(words: tuple[str, ...]) -> None:
    with pytest.raises(CgroupNameError, match="to systemd format: a slice has no empty word"):
        cgroup_path(words, "systemd")
    assert cgroup_path(("", ""), "systemd") == "/"
