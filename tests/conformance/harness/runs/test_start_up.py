"""What a run in virtual time goes without when it starts."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"aiohttp", "fakecri.cgroupfs.filesystem", "kubelet_conformance.harness.kubelets.program"}


def test_a_virtual_run_imports_no_servers_and_no_machines_of_numbers() -> None:
    program = (
        "import sys, kubelet_conformance.harness.runs.virtual\n"
        "from kubelet_conformance.harness.runs.choice import Choice\n"
        f"Choice().check(), Choice().features; print(sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
