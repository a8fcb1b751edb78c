"""The end of a container, shown while a sync of its pod is under way. Pure.

A status is generated at the beginning of a sync, from all that the runtime has. In the middle of
one the runtime has unfinished work, too: a container that is created and not yet started, a sandbox
without containers. Such work must not appear in the status (probes would take such a container for
one that has failed), so nothing is changed but the container that has ended.
"""

from __future__ import annotations

import msgspec

from refkubelet.cri.records import ContainerRecord
from refkubelet.model.objects import ContainerState, ContainerStatus, Pod, PodStatus
from refkubelet.status.conditions import with_readiness
from refkubelet.status.container_statuses import container_id, exit_of
from refkubelet.status.normalize import CONTAINER_LISTS
from refkubelet.status.remembered import was_running


def with_death(
    pod: Pod, known: PodStatus, record: ContainerRecord, runtime_name: str
) -> PodStatus | None:
    """`known`, the last status, with the end of one container, and with Ready and ContainersReady
    as they follow from it (STAT-012). None: `known` does not show that container as running.

    `record`: the ended container as the runtime has it; `runtime_name`: the scheme of IDs.
    """
    shown_id = container_id(runtime_name, record.id)
    ended = ContainerState(terminated=exit_of(runtime_name, record))

    def changed(statuses: list[ContainerStatus] | None) -> list[ContainerStatus] | None:
        if statuses is None:
            return None
        return [
            msgspec.structs.replace(status, state=ended, started=False, ready=False)
            if status.containerID == shown_id and was_running(status)
            else status
            for status in statuses
        ]

    lists = {name: changed(getattr(known, name)) for name in CONTAINER_LISTS}
    changed_status = msgspec.structs.replace(known, **lists)
    return None if changed_status == known else with_readiness(pod, changed_status)
