"""How long a container runtime takes for its calls: `FakeCRI(latency=cri_latency(Rng(1)))`.

The means are of the size that containerd with runc shows; they are chosen, not measured."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fakecri.cri.services import METHODS
from kubeobjects.arguments import tells_arguments
from simclock import Latency, Rng

READ_S: Final = 0.0003
"""Every call that is not in `MEANS_S`: it reads what the runtime has in memory."""
MEANS_S: Final[Mapping[str, float]] = MappingProxyType(
    {
        "RunPodSandbox": 0.100,  # network namespace, CNI plugins, pause container
        "StopPodSandbox": 0.100,  # CNI plugins again
        "RemovePodSandbox": 0.020,
        "CreateContainer": 0.010,  # a snapshot and a spec
        "StartContainer": 0.060,  # shim and runc
        "StopContainer": 0.030,  # beside the time that the container takes to end
        "RemoveContainer": 0.010,
        "UpdateContainerResources": 0.010,
        "UpdatePodSandboxResources": 0.001,
        "CheckpointContainer": 0.500,
        "ExecSync": 0.040,  # beside what the command takes: runc exec
        "PullImage": 0.300,  # manifest and layers from a registry nearby
        "RemoveImage": 0.015,
        "ListContainerStats": 0.003,
        "ListPodSandboxStats": 0.005,
        "ContainerStats": 0.001,
        "PodSandboxStats": 0.001,
        "ListPodSandboxMetrics": 0.005,
        "ImageFsInfo": 0.001,
    }
)
"""Mean seconds, without what the containers themselves take."""


@tells_arguments()
def cri_latency(rng: Rng, factor: float = 1.0) -> Latency:
    """The latency of a runtime. `factor` makes all calls slower or quicker; 0: they take no time.
    Raises ValueError for a factor that cannot be."""
    means_s = {**dict.fromkeys(METHODS, READ_S), **MEANS_S}
    return Latency(rng, means_s, factor=factor, purpose="latency of CRI")
