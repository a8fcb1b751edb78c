"""Which kubelet runs on which runtime: the options of a run, checked once, and the parts they give.

Two kinds of run. Virtual: refkubelet and a fake runtime in this process, each case on its own
virtual loop. Real: a kubelet process on a runtime socket, cases side by side on one real loop.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from conformance.features import Feature
from conformance.harness.machines.cgroup_trees import machine_version
from conformance.harness.machines.disks import why_no_disk

IN_PROCESS: Final = "refkubelet"
PROCESS: Final = "refkubelet-process"
FAKE: Final = "fake"
FAKE_SOCKET: Final = "fake-socket"
CONTAINERD: Final = "containerd"

EXTERNAL_FEATURES: Final = frozenset(
    {Feature.API, Feature.STATUS, Feature.PRESSURE, Feature.RESTART, Feature.IMAGE_GC}
)
KUBELET_FEATURES: Final = {
    IN_PROCESS: EXTERNAL_FEATURES | {Feature.SHUTDOWN_AGAIN, Feature.VIRTUAL_TIME},
    PROCESS: EXTERNAL_FEATURES | {Feature.SHUTDOWN_AGAIN},
}
RUNTIME_FEATURES: Final = frozenset({Feature.FAULTS, Feature.OUTSIDE_KILL})
VIRTUAL_CGROUPS: Final = frozenset(
    {Feature.CGROUPS, Feature.CGROUP_V1, Feature.CGROUP_V2, Feature.SYSTEMD_CGROUPS}
)


def _cgroups_here() -> frozenset[Feature]:
    """What of cgroups the suite can use on this machine."""
    version = machine_version()
    if version is None:
        return frozenset()
    return frozenset({Feature.CGROUPS, Feature.CGROUP_V1 if version == 1 else Feature.CGROUP_V2})


class EnvironmentProblem(Exception):
    """The chosen kubelet or runtime cannot be used; the text says what to do. Exit code 2."""


def _own_bus() -> set[Feature]:
    """Whether kubelet processes can have a system bus with a fake logind."""
    from fakecri.machine.logind_bus import can_serve

    return {Feature.SHUTDOWN} if can_serve() else set()


@dataclass(frozen=True, slots=True)
class Choice:
    """The options of a run. `seed` fixes every random choice of a virtual run; `long` lets a real
    run take the minutes that some cases last; `containerd_version` "" is the default one."""

    kubelet: str = IN_PROCESS
    runtime: str = FAKE
    seed: int = 1
    jobs: int = 8
    long: bool = False
    containerd_version: str = ""

    @property
    def virtual(self) -> bool:
        return self.kubelet == IN_PROCESS

    @property
    def features(self) -> frozenset[Feature]:
        """What this pair offers to cases."""
        kubelet = KUBELET_FEATURES.get(self.kubelet, EXTERNAL_FEATURES)
        own_machine = {Feature.NODE_RESOURCES, Feature.SHUTDOWN} if self.virtual else _own_bus()
        if self.virtual or not why_no_disk():
            own_machine.add(Feature.OWN_DISK)
        if self.runtime != FAKE_SOCKET:
            own_machine.add(Feature.MEMORY_USE)
        patience = {Feature.VIRTUAL_TIME} if self.long else set()
        pods = {Feature.POD_NETWORK} if self.runtime != CONTAINERD else set()
        if self.runtime in (FAKE, FAKE_SOCKET):
            pods |= {Feature.POD_SERVERS, Feature.POD_STATS, Feature.USER_NAMESPACES}
        own_mounts = self.kubelet in KUBELET_FEATURES or os.geteuid() == 0
        plugins = {Feature.DEVICE_PLUGINS} if own_mounts else set()
        cgroups = VIRTUAL_CGROUPS if self.virtual else _cgroups_here()
        kinds = (
            RUNTIME_FEATURES,
            own_machine,
            patience,
            pods,
            plugins,
            cgroups,
            self._runtime_features,
        )
        return kubelet.union(*kinds)

    @property
    def _runtime_features(self) -> set[Feature]:
        """A runtime given by its socket cannot be told of a registry, and nobody knows what else it
        has; containerd has image volumes, and events for all who ask, from version 2 on."""
        if self.runtime.startswith("unix://"):
            return set()
        features = {Feature.REGISTRY, Feature.IMAGE_VOLUMES, Feature.EVENTS}
        if self.runtime == CONTAINERD:
            from conformance.harness.containerd.versions import release_of

            if release_of(self.containerd_version or None).config_version < 3:
                features -= {Feature.IMAGE_VOLUMES, Feature.EVENTS}
        return features

    def check(self) -> None:
        """Raise EnvironmentProblem when the pair does not fit or something is not there."""
        program = os.path.isfile(self.kubelet) and os.access(self.kubelet, os.X_OK)
        if self.kubelet not in KUBELET_FEATURES and not program:
            raise EnvironmentProblem(
                f"--kubelet {self.kubelet}: no such program; wanted {IN_PROCESS}, {PROCESS} or the "
                "path of a kubelet binary"
            )
        self._check_pair()
        if self.jobs < 1:
            raise EnvironmentProblem(f"--jobs {self.jobs}: wanted 1 or more")
        if self.runtime.startswith("unix://"):
            self._check_endpoint()
        self._check_containerd()

    def _check_pair(self) -> None:
        known = (FAKE, FAKE_SOCKET, CONTAINERD)
        if self.runtime not in known and not self.runtime.startswith("unix://"):
            raise EnvironmentProblem(
                f"--runtime {self.runtime}: wanted {', '.join(known)} or unix:///path.sock"
            )
        if self.virtual and self.runtime != FAKE:
            raise EnvironmentProblem(
                f"--kubelet {IN_PROCESS} runs in virtual time, which needs --runtime {FAKE}; for "
                f"--runtime {self.runtime} choose --kubelet {PROCESS}"
            )
        if not self.virtual and self.runtime == FAKE:
            raise EnvironmentProblem(
                f"--kubelet {self.kubelet} is a process of its own and needs a socket: choose "
                f"--runtime {FAKE_SOCKET}"
            )

    def _check_containerd(self) -> None:
        if self.containerd_version and self.runtime != CONTAINERD:
            raise EnvironmentProblem(
                f"--containerd-version {self.containerd_version}: only --runtime {CONTAINERD} has "
                f"versions to choose, --runtime {self.runtime} is what it is"
            )
        if self.runtime == CONTAINERD:
            from conformance.harness.containerd import NodeError, docker_problem, release_of

            try:
                release_of(self.containerd_version or None)
            except NodeError as problem:
                raise EnvironmentProblem(str(problem)) from None
            if without := docker_problem():
                raise EnvironmentProblem(without)

    def _check_endpoint(self) -> None:
        from fakecri.cri.endpoint import EndpointError, require_listener, socket_path

        try:
            require_listener(
                socket_path(self.runtime),
                hint=f"start the runtime, or try --runtime {CONTAINERD} or {FAKE_SOCKET}",
            )
        except EndpointError as problem:
            raise EnvironmentProblem(f"--runtime {self.runtime}: {problem}") from None

    def repeat(self, case_id: str) -> str:
        """The command line that runs that case alone the same way."""
        line = f"kubelet-conformance run --id {case_id}"
        if self.kubelet != IN_PROCESS:
            line += f" --kubelet {self.kubelet}"
        if self.runtime != FAKE:
            line += f" --runtime {self.runtime}"
        if self.containerd_version:
            line += f" --containerd-version {self.containerd_version}"
        if self.virtual:
            return f"{line} --seed {self.seed}"
        return f"{line} --long" if self.long else line
