"""The CPU manager's state, which CPUs containers have, and its file `cpu_manager_state`. Pure.

Rules: CG-081. Upstream: pkg/kubelet/cm/cpumanager/state: state.go, checkpoint.go,
state_checkpoint.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from kubeobjects.golang.strconv import quoted
from refkubelet.checkpoints.content import CORRUPT, StateFileError, checksum, go_map, go_struct
from refkubelet.model.cpuset import EMPTY, CpuSet, format_cpuset, parse_cpuset

FILE_NAME: Final = "cpu_manager_state"
WRITTEN_AS: Final = "*state.CPUManagerCheckpoint"  # the Go type that the checksum covers
READ_AS: Final = (WRITTEN_AS, "*state.CPUManagerCheckpointV2")
ENTRIES: Final = "map[string]map[string]string"

Entries = Mapping[str, Mapping[str, CpuSet]]
"""Pod UID -> container name -> its CPUs."""


class CpuState(Struct, frozen=True):
    """The assigned CPUs. `shared`: the CPUs for all containers without exclusive ones."""

    shared: CpuSet = EMPTY
    entries: Entries = field(default_factory=dict)

    def of(self, pod_uid: str, container: str) -> CpuSet | None:
        """The container's exclusive CPUs; None: it has none."""
        return self.entries.get(pod_uid, {}).get(container)

    def given(self, pod_uid: str, container: str, cpus: CpuSet) -> CpuState:
        """The state after these CPUs were assigned to the container."""
        pod = {**self.entries.get(pod_uid, {}), container: cpus}
        return CpuState(self.shared - cpus, {**self.entries, pod_uid: pod})

    def released(self, pod_uid: str, container: str) -> CpuState:
        """The state without the container. Its CPUs are shared again, unless other containers of
        the pod have them, too, as after an init container."""
        pod = dict(self.entries.get(pod_uid, {}))
        freed = pod.pop(container, EMPTY) - frozenset().union(*pod.values())
        rest = {uid: entry for uid, entry in self.entries.items() if uid != pod_uid}
        return CpuState(self.shared | freed, {**rest, pod_uid: pod} if pod else rest)

    def own_cpus(self) -> CpuSet:
        """The exclusive CPUs of all containers."""
        empty: CpuSet = EMPTY
        return empty.union(*(cpus for pod in self.entries.values() for cpus in pod.values()))


class CpuStateFile(msgspec.Struct, frozen=True, omit_defaults=False):
    """The file's JSON. `entries` is left out when empty."""

    policyName: str = ""
    defaultCpuSet: str = ""
    entries: dict[str, dict[str, str]] | msgspec.UnsetType = msgspec.UNSET
    checksum: int = 0


def to_file(policy: str, state: CpuState) -> CpuStateFile:
    """The file's content for a state."""
    entries = {
        uid: {name: format_cpuset(pod[name]) for name in sorted(pod)}
        for uid, pod in sorted(state.entries.items())
    }
    file = CpuStateFile(policy, format_cpuset(state.shared), entries or msgspec.UNSET)
    return msgspec.structs.replace(file, checksum=_checksum(file, WRITTEN_AS))


def from_file(file: CpuStateFile, policy: str) -> CpuState:
    """The state in a file. Raises `StateFileError` if it is corrupt or another policy's."""
    if file.checksum and file.checksum not in (_checksum(file, name) for name in READ_AS):
        raise StateFileError(CORRUPT)
    if file.policyName != policy:
        raise StateFileError(
            f"configured policy {quoted(policy)} differs from state checkpoint policy "
            f"{quoted(file.policyName)}"
        )
    shared = _cpus(
        file.defaultCpuSet, f"could not parse default cpu set {quoted(file.defaultCpuSet)}"
    )
    entries = {
        uid: {
            name: _cpus(
                text,
                f"could not parse cpuset {quoted(text)} for container {quoted(name)} "
                f"in pod {quoted(uid)}",
            )
            for name, text in pod.items()
        }
        for uid, pod in _entries(file).items()
    }
    return CpuState(shared, entries)


def _cpus(text: str, failure: str) -> CpuSet:
    try:
        return parse_cpuset(text)
    except ValueError as error:
        raise StateFileError(f"{failure}: {error}") from None


def _entries(file: CpuStateFile) -> Mapping[str, Mapping[str, str]]:
    return {} if isinstance(file.entries, msgspec.UnsetType) else file.entries


def _checksum(file: CpuStateFile, go_type: str) -> int:
    entries = {uid: go_map(pod) for uid, pod in _entries(file).items()}
    return checksum(
        go_type,
        go_struct(
            {
                "PolicyName": ("string", file.policyName),
                "DefaultCPUSet": ("string", file.defaultCpuSet),
                "Entries": (ENTRIES, go_map(entries)),
                "Checksum": ("checksum.Checksum", "0"),
            }
        ),
    )
