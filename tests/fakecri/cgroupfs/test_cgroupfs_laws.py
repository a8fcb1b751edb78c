"""Laws of the fake cgroups that hold after any operations, and of its number readers."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakecri.cgroupfs import CgroupFS
from fakecri.cgroupfs.controllers.memory_use import Memory
from fakecri.cgroupfs.interface.tree import Cgroup
from fakecri.cgroupfs.interface.values import (
    UNLIMITED,
    int_list,
    list_text,
    one_of,
    signed,
    size,
    small,
    unsigned,
)

KIB = 1024
places = st.sampled_from(["/a", "/b", "/a/a", "/a/b", "/a/a/a"])
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["mkdir", "rmdir", "spawn", "move", "use", "cache", "kill", "reap", "limit"]
        ),
        places,
        st.integers(0, 3),
        st.integers(0, 64).map(lambda n: n * 4 * KIB),
    ),
    max_size=60,
)


@settings(max_examples=60)
@given(version=st.sampled_from([1, 2]), program=steps)
def test_sums_are_the_sums_of_what_is_below_CG_132(
    version: int, program: list[tuple[str, str, int, int]]
) -> None:
    fs = CgroupFS(version, controllers=["memory"] if version == 1 else None)
    mount = "/memory" if version == 1 else ""
    limit = "memory.limit_in_bytes" if version == 1 else "memory.max"
    if version == 2:
        fs.path("/cgroup.subtree_control").write_text("+memory")
    processes = [fs.spawn() for _ in range(4)]
    for verb, place, number, amount in program:
        path, process = fs.path(f"{mount}{place}"), processes[number]
        actions: dict[str, Callable[[], object]] = {
            "mkdir": path.mkdir,
            "rmdir": path.rmdir,
            "spawn": lambda at=place: processes.append(fs.spawn(at)),
            "move": lambda p=path, q=process: (p / "cgroup.procs").write_text(str(q.pid)),
            "use": lambda q=process, n=amount: q.set_usage(memory_bytes=n),
            "cache": lambda p=path, n=amount: p.set_usage(cache_bytes=n),
            "kill": process.kill,
            "reap": process.reap,
            "limit": lambda p=path, n=amount: (p / limit).write_text(str(n)),
        }
        with suppress(OSError):
            actions[verb]()
        for hierarchy in fs.mounts.values():
            _check(hierarchy.root)


def _check(cgroup: Cgroup) -> None:
    """The counts of this group are those of its own and of its children."""
    children = list(cgroup.children.values())
    own = [task for task in cgroup.members.values() if task.process.alive]
    assert cgroup.live == len(own) + sum(child.live for child in children)
    memory: Memory | None = cgroup.states.get("memory")
    if memory is not None:
        below = [m for m in memory.below if m is not memory]
        local = memory.anon_bytes + memory.file_bytes
        assert memory.usage_bytes == local + sum(m.anon_bytes + m.file_bytes for m in below)
        assert memory.anon_bytes == sum(p.charges[cgroup] for p in memory.holders)
        assert min(memory.anon_bytes, memory.file_bytes) >= 0
        assert memory.usage_bytes <= memory.limit_bytes
    for child in children:
        _check(child)


@given(st.integers(0, 2**64 - 1))
def test_every_way_to_write_a_number_reads_the_same_CG_105(number: int) -> None:
    octal = f"0{number:o}"
    assert {unsigned(t) for t in (f"{number}", f"+{number}\n", hex(number), octal)} == {number}


@pytest.mark.parametrize(
    ("reader", "text", "code"),
    [
        (unsigned, "", errno.EINVAL),
        (unsigned, " 1", errno.EINVAL),
        (unsigned, "-1", errno.EINVAL),
        (unsigned, str(2**64), errno.ERANGE),
        (unsigned, f"{2**64}x", errno.ERANGE),
        (unsigned, "08", errno.EINVAL),
        (unsigned, "0x", errno.EINVAL),
        (signed, str(2**63), errno.ERANGE),
        (signed, f"-{2**63 + 1}", errno.ERANGE),
        (small, str(2**31), errno.ERANGE),
        (small, " 1 1", errno.EINVAL),
        (lambda text: one_of(text, 0, 1), "2", errno.ERANGE),
        (lambda text: one_of(text, 0, 1), "x", errno.EINVAL),
        (lambda text: size(text, unlimited="max"), "-1", errno.EINVAL),
        (lambda text: size(text, unlimited="-1"), "max", errno.EINVAL),
        (lambda text: size(text, unlimited="-1"), "1KB", errno.EINVAL),
        (lambda text: int_list(text, 2), "0-2", errno.ERANGE),
        (lambda text: int_list(text, 2), "1-0", errno.EINVAL),
        (lambda text: int_list(text, 2), str(2**31), errno.EOVERFLOW),
        (lambda text: int_list(text, 2), "0-1:2/1", errno.EINVAL),
    ],
)
def test_what_the_readers_refuse_CG_104(
    reader: Callable[[str], object], text: str, code: int
) -> None:
    with pytest.raises(OSError) as refused:
        reader(text)
    assert refused.value.errno == code


@given(st.frozensets(st.integers(0, 63)))
def test_a_list_reads_back_as_it_was_written_CG_143(members: frozenset[int]) -> None:
    assert int_list(list_text(members), 64) == members


@given(st.integers(0, 2**70))
def test_sizes_are_whole_pages_within_the_counter_CG_130(number: int) -> None:
    value = size(str(number), unlimited="-1")
    assert value % 4096 == 0
    assert 0 <= value <= UNLIMITED
    if number < UNLIMITED:
        assert number - value in range(4096)
