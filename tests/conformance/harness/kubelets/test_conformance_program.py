"""How a kubelet binary is started."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from conformance.harness.kubelets.base import KubeletDied, NodePaths
from conformance.harness.kubelets.process import ProcessKubelet
from conformance.harness.kubelets.program import external


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
    told = external(Path("/bin/kubelet"), node_ip="10.0.0.7").command
    assert told == ("/bin/kubelet", "--node-ip=10.0.0.7")
