"""Names as parts of paths (GC-011, GC-201, NODE-200)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refkubelet.model import names

EMPTY = "it must not be '', '.' or '..'"
SLASH = "it must not contain '/' or a zero byte"
LONG = "it must not have more than 255 bytes"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *(("a", None), ("...", None), (".a", None), ("a" * 255, None), ("\udcff" * 255, None)),
        *(("", EMPTY), (".", EMPTY), ("..", EMPTY), ("a/b", SLASH), ("a\0", SLASH)),
        *(("a" * 256, LONG), ("é" * 128, LONG), ("\udcff" * 256, LONG)),
    ],
)
def test_what_is_one_part_of_a_path(name: str, why: str | None) -> None:
    assert names.name_problem(name) == why
    if why is None:
        assert names.safe_join("/r", "x", name) == f"/r/x/{name}"
        return
    with pytest.raises(names.UnsafeNameError) as caught:
        names.safe_join("/r", "x", name)
    shown = repr(name if len(name) < 256 else name[:255] + "...")
    assert str(caught.value) == f"{shown} cannot be part of a path: {why}"


@pytest.mark.parametrize(
    ("path", "joined"), [("a", "/r/a"), ("a//b/", "/r/a/b"), ("./a/./b", "/r/a/b")]
)
def test_relative_paths(path: str, joined: str) -> None:
    assert names.safe_path("/r", path) == joined


@pytest.mark.parametrize(
    ("path", "why"),
    [
        *((path, "it must be a relative path") for path in ("", "/", "/a", ".", "//", "./")),
        ("a/../b", EMPTY),
        ("..", EMPTY),
    ],
)
def test_paths_that_lead_elsewhere(path: str, why: str) -> None:
    shown = ".." if why == EMPTY else path
    with pytest.raises(names.UnsafeNameError) as caught:
        names.safe_path("/r", path)
    assert str(caught.value) == f"{shown!r} cannot be part of a path: {why}"


def test_paths_of_logs_and_pods_GC_011_GC_201_NODE_200() -> None:
    assert names.pod_log_dir("/l", "ns", "web", "u") == "/l/ns_web_u"
    assert names.container_log_path("main", 3) == "main/3.log"
    assert names.pod_dir("/r", "u") == "/r/pods/u"
    plugin = "kubernetes.io/empty-dir"
    assert names.pod_volume_dir("/r", "u", plugin, "v") == (
        "/r/pods/u/volumes/kubernetes.io~empty-dir/v"
    )
    assert names.container_dir("/r", "u", "c") == "/r/pods/u/containers/c"


@pytest.mark.parametrize(
    "make",
    [
        lambda name: names.pod_log_dir("/l", name, "web", "u"),
        lambda name: names.container_log_path(name, 0),
        lambda name: names.pod_dir("/r", name),
        lambda name: names.pod_volume_dir("/r", "u", "p", name),
        lambda name: names.pod_volume_dir("/r", name, "p", "v"),
        lambda name: names.container_dir("/r", "u", name),
    ],
)
def test_no_name_leads_out_of_its_root(make: Callable[[str], str]) -> None:
    with pytest.raises(names.UnsafeNameError):
        make("a/../..")


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        ("ns_web_u", ("ns", "web", "u")),
        ("ns_web", None),
        ("ns_web_u_x", None),
        ("_web_u", None),
        ("ns__u", None),
        ("ns_web_", None),
        ("", None),
    ],
)
def test_names_of_log_directories_are_read_GC_011(
    entry: str, parts: tuple[str, str, str] | None
) -> None:
    assert names.parse_pod_log_dir(entry) == parts
