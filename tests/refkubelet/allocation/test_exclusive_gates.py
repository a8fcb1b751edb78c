"""Gates that let pods with exclusive CPUs or memory be resized (CG-062.1)."""

from __future__ import annotations

import pytest

from kubeobjects.structs import replace
from refkubelet.allocation.feasibility import ResizeLimits
from refkubelet.config import parse_config

FILE = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
featureGates: {%s}
"""


@pytest.mark.parametrize(
    ("gates", "cpu", "memory"),
    [
        ("", "static", "Static"),
        ("InPlacePodVerticalScalingExclusiveCPUs: true", "none", "Static"),
        ("InPlacePodVerticalScalingExclusiveMemory: true", "static", "None"),
    ],
)
def test_each_gate_lifts_the_limit_of_its_manager(gates: str, cpu: str, memory: str) -> None:
    config = parse_config((FILE % gates).encode(), "k.yaml")
    config = replace(config, cpu_manager_policy="static", memory_manager_policy="Static")
    limits = ResizeLimits.of(config, cgroup_version=2)
    assert (limits.policy("cpu"), limits.policy("memory")) == (cpu, memory)
