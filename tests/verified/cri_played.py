"""A fake that plays what a real runtime runs, and the pods and containers of random operations."""

from __future__ import annotations

import os
from typing import Final

from kubecri.v1 import api_pb2 as cri
from pairs import Side
from runtime_calls import container_config, pod_config

from fakecri import FakeCRI, exits, ignores, replies, start_fails, stops
from kubelet_conformance.harness.containerd.settings import APP_IMAGE
from simclock import Ids, Rng

PAUSE: Final = "localhost/pause:1"
IMAGES: Final = ("localhost/busybox:1", "localhost/busybox:2", PAUSE)
EXECS: Final = ("sh", "-c", "echo out; echo err >&2; exit 4")
PROGRAMS: Final = {
    "runs": ["sh", "-c", "exec sleep 1000"],
    "handles": ["sh", "-c", "trap 'exit 5' TERM; touch /ready; while :; do sleep 0.05; done"],
    "exits": ["sh", "-c", "exit 3"],
    "broken": ["/no/such"],
}
"""Containers are called like what they do."""


def played(version: str = "") -> FakeCRI:
    """A fake whose containers do what those names say, set up like that version of containerd."""
    images = (*IMAGES, APP_IMAGE)
    fake = FakeCRI(ids=Ids(Rng(os.getpid())), images=images, runtime_handlers=("runc",))
    if not version.startswith("1.6"):
        fake.core.images.add(PAUSE, pinned=True)  # CRI-093
    fake.behaves(ignores("SIGTERM"), container="runs")
    fake.behaves(stops(5), container="handles")
    fake.behaves(exits(3), container="exits")
    fake.behaves(start_fails("no such file"), container="broken")
    fake.behaves(replies(list(EXECS), 4, "out\n", "err\n"))
    return fake


def pod_of(side: Side, name: str, attempt: int) -> cri.PodSandboxConfig:
    options = cri.NamespaceOption(pid=cri.CONTAINER)
    return pod_config(
        name,
        attempt,
        log_directory=f"{side.log_root}/{name}",
        labels={"pod": name, "attempt": str(attempt)},
        annotations={"note": name},
        linux=cri.LinuxPodSandboxConfig(
            cgroup_parent=f"/refkubelet-machine/{name}",
            security_context=cri.LinuxSandboxSecurityContext(namespace_options=options),
        ),
    )


def container_of(name: str, attempt: int, image: str) -> cri.ContainerConfig:
    options = cri.NamespaceOption(pid=cri.CONTAINER)
    return container_config(
        name,
        attempt,
        image=image,
        command=PROGRAMS[name],
        labels={"container": name},
        annotations={"attempt": str(attempt)},
        log_path=f"{name}/{attempt}.log",
        linux=cri.LinuxContainerConfig(
            security_context=cri.LinuxContainerSecurityContext(namespace_options=options)
        ),
    )
