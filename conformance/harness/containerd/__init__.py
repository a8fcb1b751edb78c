"""A real containerd for the suite, started with testcontainers from an image made on the spot.

`docker_problem()` says in one line what is missing; `start_containerd(workdir)` gives a ready
`ContainerdNode` of one of the `VERSIONS`. By hand: `python -m conformance.harness.containerd`.
"""

from conformance.harness.containerd.docker_host import NodeError, docker_problem
from conformance.harness.containerd.node import ContainerdNode, start_containerd
from conformance.harness.containerd.settings import BUSYBOX_IMAGES, PAUSE_IMAGE
from conformance.harness.containerd.versions import VERSIONS, release_of

__all__ = [
    "BUSYBOX_IMAGES",
    "PAUSE_IMAGE",
    "VERSIONS",
    "ContainerdNode",
    "NodeError",
    "docker_problem",
    "release_of",
    "start_containerd",
]
