"""cgroup v2, against the kernel."""

from __future__ import annotations

import signal
from typing import Any

from cgroupfs_helpers import equal, eventually, group, outcome, put, read, write


def test_v2_says_where_processes_are_CG_122(side: Any) -> None:
    path, child = group(side, "unified"), side.child()
    inner = path / "inner"
    inner.mkdir()
    put(child, inner)
    assert read(path / "cgroup.events") == "populated 1\nfrozen 0\n"
    child.kill(signal.SIGKILL)
    eventually(lambda: equal(read(path / "cgroup.events"), "populated 0\nfrozen 0\n"))
    child.reap()


def test_v2_freezes_a_subtree_and_frozen_processes_die_CG_123(side: Any) -> None:
    path, child = group(side, "unified"), side.child()
    inner = path / "inner"
    inner.mkdir()
    put(child, inner)
    assert write(path / "cgroup.freeze", "1") == "ok"
    eventually(lambda: equal(read(inner / "cgroup.events"), "populated 1\nfrozen 1\n"))
    assert read(inner / "cgroup.freeze") == "0\n"
    assert write(inner / "cgroup.freeze", "0") == "ok"
    assert read(inner / "cgroup.events") == "populated 1\nfrozen 1\n"
    child.kill(signal.SIGKILL)
    eventually(lambda: equal(read(inner / "cgroup.events"), "populated 0\nfrozen 1\n"))
    assert child.reap() == -signal.SIGKILL


def test_v2_kills_a_subtree_CG_124(side: Any) -> None:
    path, one, two = group(side, "unified"), side.child(), side.child()
    inner = path / "inner"
    inner.mkdir()
    put(one, path)
    put(two, inner)
    for text, wanted in (("0", "ERANGE"), ("2", "ERANGE"), ("x", "EINVAL"), ("1\n", "ok")):
        assert write(path / "cgroup.kill", text) == wanted
    assert (one.reap(), two.reap()) == (-9, -9)
    eventually(lambda: equal(read(path / "cgroup.events"), "populated 0\nfrozen 0\n"))


def test_v2_limits_depth_and_number_CG_125(side: Any) -> None:
    path = group(side, "unified")
    inner = path / "inner"
    inner.mkdir()
    assert write(path / "cgroup.max.depth", "1") == "ok"
    assert outcome((inner / "deeper").mkdir) == "EAGAIN"
    (path / "beside").mkdir()
    assert write(path / "cgroup.max.descendants", "2") == "ok"
    assert outcome((path / "third").mkdir) == "EAGAIN"
    assert "nr_descendants 2\n" in read(path / "cgroup.stat")


def test_v2_threaded_groups_CG_113(side: Any) -> None:
    path, child = group(side, "unified"), side.child()
    a = path / "a"
    b = a / "b"
    a.mkdir()
    b.mkdir()
    put(child, a)
    assert write(a / "cgroup.type", "threaded") == "EOPNOTSUPP"
    put(child, path)
    assert write(a / "cgroup.type", "threaded") == "ok"
    types = [read(p / "cgroup.type") for p in (path, a, b)]
    assert types == ["domain threaded\n", "threaded\n", "domain invalid\n"]
    assert read(a / "cgroup.procs") == "EOPNOTSUPP"
    assert write(b / "cgroup.procs", str(child.pid)) == "EOPNOTSUPP"
    assert write(b / "cgroup.type", "threaded") == "ok"
    assert write(a / "cgroup.threads", str(child.pid)) == "ok"
    assert read(a / "cgroup.threads") == f"{child.pid}\n"
    assert read(path / "cgroup.procs") == f"{child.pid}\n"
    outside = group(side, "unified", "outside")
    assert write(outside / "cgroup.threads", str(child.pid)) == "EOPNOTSUPP"


def test_pressure_triggers_CG_126(side: Any) -> None:
    path = group(side, "unified")
    file = path / "memory.pressure"
    for text in ("some 150000 2000000", "full 150000 2000000", "some 1 10000000"):
        assert write(file, text) == "ok", text
    for text in ("some 0 2000000", "some 2000001 2000000", "some 1 12000000", "some 1 400000"):
        assert write(file, text) == "EINVAL", text
    for text in ("most 1 2000000", "some 1", " some 1 2000000", "x"):
        assert write(file, text) == "EINVAL", text
    assert write(path / "cgroup.pressure", "0") == "ok"
    assert not file.exists()
    assert write(path / "cgroup.pressure", "1") == "ok"
    assert file.exists()
