"""Whether the next sync starts a container, seen from its newest record (LIFE-114). Pure.

Nothing here looks at back-off: *when* is another question than *whether*.
Upstream: pkg/kubelet/container/helpers.go: ShouldContainerBeRestarted.
"""

from __future__ import annotations

from refkubelet.model.objects import Container, Pod
from refkubelet.runtime.decisions.restart_policy import container_should_restart
from refkubelet.runtime.records import ContainerRecord, ContainerState


def container_should_be_restarted(
    container: Container, pod: Pod, newest: ContainerRecord | None
) -> bool:
    """LIFE-114: never in a deleted pod; otherwise whatever has no record or has come to nothing,
    and exited containers as LIFE-124 says."""
    if pod.metadata is not None and pod.metadata.deletionTimestamp is not None:
        return False
    if newest is None:
        return True
    if newest.state is ContainerState.RUNNING:
        return False
    if newest.state in (ContainerState.CREATED, ContainerState.UNKNOWN):
        return True
    return container_should_restart(container, pod, newest.exit_code)
