"""Disks and devices of cgroup v1, against the kernel."""

from __future__ import annotations

from typing import Any, Final

import pytest
from cgroup_sides import disks
from cgroupfs_helpers import group, read, write

LIMITS: Final = {
    "{} 1048576": "1048576", "{} 0": "", "{} -1": "EINVAL", "{} 1K": "1", "{}  5": "5",
    "{}\t6": "6", "{}": "EINVAL", "{} ": "EINVAL", "{} 5 6": "5", "{} 0x10": "", "{} 010": "10",
    "{} +5": "EINVAL", "{} 18446744073709551615": "", "{} max": "EINVAL", "{},9": "EINVAL",
    " {} 7 \n": "7", "0{} 8": "8", "0x{} 9": "EINVAL", "-{} 9": "EINVAL", "{} rbps=5": "EINVAL",
    "{}\n4": "4", "254:1000 5": "ENODEV", "254:1000": "EINVAL", "x": "EINVAL", "\n": "EINVAL",
    "{} 99999999999999999999999": "200376420520689663",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["read_bps", "write_bps", "read_iops", "write_iops"])
def test_limits_of_disks_CG_146(side: Any, kind: str) -> None:
    disk = disks()[0]
    path = group(side, "blkio") / f"blkio.throttle.{kind}_device"
    for text, wanted in LIMITS.items():
        before = read(path)
        result = write(path, text.format(disk))
        if wanted.startswith("E"):
            assert (result, read(path)) == (wanted, before), text
        else:
            value = int(wanted or "0") & (2**32 - 1 if kind.endswith("iops") else 2**64 - 1)
            assert (result, read(path)) == ("ok", f"{disk} {value}\n" if wanted else ""), text


def test_a_disk_that_was_configured_has_rows_here_and_above_CG_146(side: Any) -> None:
    outer = group(side, "blkio")
    inner = outer / "inner"
    inner.mkdir()
    one, two = disks()[:2]
    assert write(inner / "blkio.throttle.read_bps_device", f"{one} x") == "EINVAL"
    assert write(outer / "blkio.throttle.read_bps_device", f"{two} 5") == "ok"
    assert write(outer / "blkio.throttle.read_bps_device", f"{one} 6") == "ok"
    assert write(outer / "blkio.bfq.weight_device", f"{one} 6") == "EOPNOTSUPP"
    assert read(outer / "blkio.throttle.read_bps_device") == f"{two} 5\n{one} 6\n"
    words = ("Read", "Write", "Sync", "Async", "Discard", "Total")
    rows = {disk: "".join(f"{disk} {word} 0\n" for word in words) for disk in (one, two)}
    for file in ("io_serviced", "io_service_bytes", "io_serviced_recursive"):
        assert read(outer / f"blkio.throttle.{file}") == f"{rows[two]}{rows[one]}Total 0\n"
        assert read(inner / f"blkio.throttle.{file}") == f"{rows[one]}Total 0\n"
    assert write(outer / "blkio.reset_stats", "1") == "ok"


DEVICE_RULES: Final = {
    "c 1:3 rwm": "ok", "b *:* m": "ok", "c *:5 r": "ok", "c 1:3 rr": "ok", "c 1:3 rwmr": "ok",
    " c 1:3 rwm\n": "ok", "c 1:3 rwm x": "ok", "c\t1:3\tr": "ok", "c 01:3 r": "ok",
    "c 1:4294967295 r": "ok", "c 1:4294967296 r": "EINVAL", "c 123456789012:3 r": "EINVAL",
    "c 1:3": "EINVAL", "c 1:3 ": "EINVAL", "c 1:3 x": "EINVAL", "c 1:3 rx": "EINVAL",
    "c 1:3 r w": "EINVAL", "x 1:3 rwm": "EINVAL", "c 1 rwm": "EINVAL", "c  1:3 rwm": "EINVAL",
    "c 1:3  rwm": "EINVAL", "c 1: r": "EINVAL", "c :3 r": "EINVAL", "c 1:-1 r": "EINVAL",
    "c 0x1:3 r": "EINVAL", "c 1:*3 r": "EINVAL", "c": "EINVAL", "\n": "EINVAL",
}  # fmt: skip


def test_how_devices_are_written_CG_147(side: Any) -> None:
    path = group(side, "devices")
    for text, wanted in DEVICE_RULES.items():
        assert write(path / "devices.deny", text) == wanted, text
        assert write(path / "devices.allow", text) == wanted, text
    assert read(path / "devices.list") == "a *:* rwm\n"
    assert write(path / "devices.deny", "anything that begins with a") == "ok"
    assert read(path / "devices.list") == ""


def test_a_list_of_allowed_devices_CG_147(side: Any) -> None:
    path = group(side, "devices")
    for file, text, wanted in (
        ("deny", "a", ""),
        ("allow", "c 1:3 rw", "c 1:3 rw\n"),
        ("allow", "c 5:* m", "c 1:3 rw\nc 5:* m\n"),
        ("allow", "c 1:3 m", "c 1:3 rwm\nc 5:* m\n"),
        ("deny", "c 1:3 w", "c 1:3 rm\nc 5:* m\n"),
        ("deny", "c 5:1 m", "c 1:3 rm\nc 5:* m\n"),
        ("deny", "c 1:3 rm", "c 5:* m\n"),
        ("allow", "b 4294967295:0 r", "c 5:* m\nb *:0 r\n"),
        ("allow", "a", "a *:* rwm\n"),
    ):
        assert write(path / f"devices.{file}", text) == "ok", text
        assert read(path / "devices.list") == wanted, text


def test_a_child_never_has_more_devices_than_its_parent_CG_147(side: Any) -> None:
    path = group(side, "devices")
    child = path / "child"
    assert write(path / "devices.deny", "a") == "ok"
    for text in ("c 1:3 rw", "c 5:* rwm"):
        assert write(path / "devices.allow", text) == "ok"
    child.mkdir()
    assert read(child / "devices.list") == "c 1:3 rw\nc 5:* rwm\n"
    for text in ("c 1:3 m", "c 9:9 r", "a", "c *:* r", "b 5:1 r"):
        assert write(child / "devices.allow", text) == "EPERM", text
    assert write(child / "devices.allow", "c 5:1 rwm") == "ok"
    assert write(path / "devices.allow", "a") == write(path / "devices.deny", "a") == "EINVAL"
    assert write(path / "devices.deny", "c 5:* rwm") == "ok"
    assert read(child / "devices.list") == "c 1:3 rw\n"


def test_exceptions_of_an_open_parent_CG_147(side: Any) -> None:
    path = group(side, "devices")
    child = path / "child"
    assert write(path / "devices.deny", "c 1:3 r") == "ok"
    child.mkdir()
    assert read(child / "devices.list") == "a *:* rwm\n"
    for text, wanted in (("c 1:3 r", "EPERM"), ("c *:3 rw", "EPERM"), ("c 1:3 w", "ok"),
                         ("c 1:4 r", "ok")):  # fmt: skip
        assert write(child / "devices.allow", text) == wanted, text
    assert write(child / "devices.deny", "a") == "ok"
    for text, wanted in (("c 1:3 r", "EPERM"), ("c *:* w", "ok"), ("c 1:4 r", "ok")):
        assert write(child / "devices.allow", text) == wanted, text
    assert read(child / "devices.list") == "c *:* w\nc 1:4 r\n"
    assert write(path / "devices.deny", "c 2:2 w") == "ok"
    assert read(child / "devices.list") == "c 1:4 r\n"
    assert write(child / "devices.allow", "a") == "ok"
    assert write(path / "devices.deny", "c 7:7 m") == "ok"
    assert write(child / "devices.allow", "c 7:7 m") == "EPERM"
