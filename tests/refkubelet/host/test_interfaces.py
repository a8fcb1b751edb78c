"""The interfaces in /proc/net/dev (SRV-030)."""

from __future__ import annotations

from pathlib import Path

from refkubelet.host.interfaces import parse_interfaces, read_interfaces
from refkubelet.host.real_machine import RealMachine
from refkubelet.model.traffic import InterfaceTraffic, Traffic
from simclock import RealClock

HEAD = "Inter-|   Receive |  Transmit\n face |bytes packets errs\n"


def row(name: str, first: int = 1) -> str:
    return f"  {name}: " + "  ".join(str(first + i) for i in range(16)) + "\n"


def test_bytes_and_errors_stand_in_their_columns_SRV_030() -> None:
    text = HEAD + row("eth0") + row("eth1", 101)
    assert parse_interfaces(text) == (
        InterfaceTraffic("eth0", rx_bytes=1, rx_errors=3, tx_bytes=9, tx_errors=11),
        InterfaceTraffic("eth1", rx_bytes=101, rx_errors=103, tx_bytes=109, tx_errors=111),
    )


def test_interfaces_of_pods_and_of_the_node_itself_are_left_out_SRV_030() -> None:
    names = ("lo", "veth12ab", "docker0", "nerdctl0", "Docker_x", "ens3", "wlo1", "br-veth")
    text = HEAD + "".join(row(name) for name in names)
    assert [i.name for i in parse_interfaces(text)] == ["ens3", "wlo1", "br-veth"]


def test_odd_lines_are_left_out_SRV_030() -> None:
    odd = "\n: 1 2\neth0 1 2 3\neth1: 1 2 3\n" + row("eth2").replace("16", "-1") + row("", 5)
    assert parse_interfaces(HEAD + odd) == ()
    assert [i.name for i in parse_interfaces(HEAD + odd + row("eth0:1"))] == ["eth0:1"]
    assert parse_interfaces("") == ()


def test_a_machine_reads_its_own_files_SRV_030(tmp_path: Path) -> None:
    machine = RealMachine(RealClock(), tmp_path)
    assert machine.interfaces() == ()
    assert machine.boot_time_ns() is None
    assert read_interfaces(tmp_path / "proc") == ()
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/dev").write_text(HEAD + row("eth0"))
    (tmp_path / "proc/stat").write_text("cpu 1 2\nbtime 1700000000\nprocesses 5\n")
    assert [i.name for i in machine.interfaces()] == ["eth0"]
    assert machine.boot_time_ns() == 1_700_000_000 * 10**9
    (tmp_path / "proc/stat").write_text("cpu 1 2\nbtime soon\n")
    assert machine.boot_time_ns() is None


def test_every_interface_is_told_once_SRV_032() -> None:
    eth0, eth1 = InterfaceTraffic("eth0", 1), InterfaceTraffic("eth1", 2)
    assert Traffic(0, eth0, (eth1,)).each() == (eth0, eth1)
    assert Traffic(0, eth0, (eth0, eth1)).each() == (eth0, eth1)
    assert Traffic(0, None, (eth1,)).each() == (eth1,)
