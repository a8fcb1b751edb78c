"""How a kubelet binary is started."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from fakecri import FakeNode
from kubelet_conformance.harness.kubelets.base import KubeletDied, NodePaths
from kubelet_conformance.harness.kubelets.process import ProcessKubelet
from kubelet_conformance.harness.kubelets.program import (
    external,
    on_machine,
    own_address,
    with_own_cgroups,
)
from kubelet_conformance.harness.machines.given.machine import GivenMachine
from kubeobjects.structs import replace
from simclock import RealClock


async def test_a_kubelet_binary_is_started_in_an_empty_directory_of_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it removes there is nobody's; its path may be a relative one all the same."""
    program = tmp_path / "kubelet"
    program.write_text("#!/bin/sh\nls -a; pwd; echo ended; exit 3\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    paths = NodePaths(tmp_path / "case")
    paths.make()
    kubelet = ProcessKubelet(
        external(Path("kubelet")), paths, "unix:///x", node_name="node", kubeconfig=None
    )
    with pytest.raises(KubeletDied, match=r"exit code 3:\s+\.\s+\.\.\s+/.*/case/empty\s+ended"):
        await asyncio.wait_for(kubelet.start({}), 30)
    await kubelet.close()
    assert os.getcwd() == str(tmp_path)


def test_a_prefix_stands_before_the_binary() -> None:
    assert external(Path("/bin/kubelet"), ("env", "-i")).command == ("env", "-i", "/bin/kubelet")


def test_a_kubelet_binary_is_told_its_address_so_that_it_asks_no_dns_server() -> None:
    told = external(Path("/bin/kubelet"), node_ip="10.0.0.7").command
    assert told == ("/bin/kubelet", "--node-ip=10.0.0.7")
    assert external(Path("/bin/kubelet")).command == ("/bin/kubelet",)


def test_the_own_address_is_one_of_this_machine_and_not_its_loopback() -> None:
    address = own_address()
    if not address:
        pytest.skip("this machine has no way out")
    assert not address.startswith("127.")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind((address, 0))


def test_in_jumping_time_a_kubelet_measures_no_cgroup_of_the_machine(tmp_path: Path) -> None:
    """Unless its case looks at cgroups: then it has a group of its own, or a machine."""
    real, jumping = external(Path("/bin/kubelet")), external(Path("/bin/kubelet"), ("in-time",))
    assert "cgroupRoot" not in real.config
    assert not (Path("/sys/fs/cgroup") / jumping.config["cgroupRoot"].lstrip("/")).exists()
    jumping = replace(jumping, fixed_links=None)  # that directory is the machine's
    own = with_own_cgroups(jumping, "/case")
    assert ("cgroupRoot" in own.config, own.defaults["cgroupRoot"]) == (False, "/case")
    machine = GivenMachine(FakeNode(), RealClock(), tmp_path, tmp_path / "root")
    assert "cgroupRoot" not in on_machine(jumping, machine, tmp_path, None).config


def test_a_kubelet_binary_collects_garbage_seldom_unless_the_user_says_when(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GOGC", raising=False)
    assert external(Path("/bin/kubelet")).environment == {"GOGC": "400"}
    monkeypatch.setenv("GOGC", "100")
    assert external(Path("/bin/kubelet")).environment == {"GOGC": "100"}
