"""Paths as code for real directories uses them, and mistakes of tests that say what is used."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from typing import Any

import pytest

from fakecri.cgroupfs import CgroupFS


def tree() -> CgroupFS:
    fs = CgroupFS(version=2)
    fs.path("/cgroup.subtree_control").write_text("+memory +io")
    for name in ("/kubepods", "/kubepods/pod1", "/kubepods/pod1/c", "/web"):
        fs.path(name).mkdir()
    return fs


@pytest.mark.parametrize(
    ("start", "pattern", "found"),
    [
        ("/", "*/cgroup.procs", ["/kubepods/cgroup.procs", "/web/cgroup.procs"]),
        ("/", "kube*", ["/kubepods"]),
        ("/kubepods", "**", ["/kubepods", "/kubepods/pod1", "/kubepods/pod1/c"]),
        ("/web", "**/cgroup.t*", ["/web/cgroup.threads", "/web/cgroup.type"]),
        ("/kubepods", "**/c", ["/kubepods/pod1/c"]),
        ("/kubepods", "pod?/c", ["/kubepods/pod1/c"]),
        ("/nowhere", "*", []),
        ("/nowhere", "**", []),
        ("/web/cgroup.type", "**", []),
        ("/kubepods", "**/**/c", ["/kubepods/pod1/c"]),
    ],
)
def test_patterns_find_what_pathlib_finds(start: str, pattern: str, found: list[str]) -> None:
    assert [str(path) for path in tree().path(start).glob(pattern)] == found


def test_everything_below_is_found_once() -> None:
    fs = tree()
    procs = [str(path.parent) for path in fs.path("/").rglob("cgroup.procs")]
    assert procs == ["/", "/kubepods", "/kubepods/pod1", "/kubepods/pod1/c", "/web"]
    with pytest.raises(ValueError, match="pattern: wanted names such as"):
        list(fs.path("/").glob("/web"))


def test_files_open_in_the_modes_of_pathlib() -> None:
    limit = tree().path("/web/memory.max")
    with limit.open("w") as opened:
        opened.write("64M")
    with limit.open("r") as opened:
        assert list(opened) == ["67108864\n"]
    with pytest.raises(PermissionError), limit.with_name("memory.maximum").open("a"):
        pass
    with pytest.raises(ValueError, match=r"mode: wanted one of r, w, a, .* got 'rb'"):
        limit.open("rb")


def test_a_group_of_v1_is_renamed_to_a_text() -> None:
    fs = CgroupFS(version=1)
    fs.path("/memory/a").mkdir()
    assert fs.path("/memory/a").rename("/memory/b") == fs.path("/memory/b")
    assert fs.path("/memory/b").is_dir()


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        (lambda g, p: p.set_usage(memory_bytes=-1), "memory_bytes: wanted a whole number from 0"),
        (lambda g, p: p.set_usage(memory_bytes="5M"), "memory_bytes: wanted a whole number from 0"),
        (lambda g, p: p.set_usage(cpu_user_ns=0.5), "cpu_user_ns: wanted a whole number from 0"),
        (lambda g, p: g.set_usage(cache_bytes=-1), "cache_bytes: wanted a whole number from 0"),
        (lambda g, p: g.use_io("sda", reads=1), "device: wanted a number such as 8:0, got 'sda'"),
        (lambda g, p: g.use_io("8:0", reads=-1), "reads: wanted a whole number from 0, got -1"),
        (lambda g, p: g.stall("memry", some_us=1), "resource: wanted one of cpu, memory, io"),
        (lambda g, p: g.stall("io", some_us=-1), "some_us: wanted a whole number from 0"),
        (lambda g, p: g.set_pressure("io", "most", (0, 0, 0)), "kind: wanted one of some, full"),
    ],
)
def test_a_wrong_word_is_refused_where_it_is_written(
    sentence: Callable[[Any, Any], Any], words: str
) -> None:
    fs = tree()
    with pytest.raises(ValueError, match=re.escape(words)):
        sentence(fs.path("/web"), fs.spawn("/web"))


@pytest.mark.parametrize("act", ["fork", "start_thread"])
def test_who_has_ended_has_no_children(act: str) -> None:
    process = tree().spawn("/web")
    process.exit()
    with pytest.raises(OSError, match="No such process") as refused:
        getattr(process, act)()
    assert refused.value.errno == errno.ESRCH
