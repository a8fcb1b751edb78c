"""What happens to containers: create, start, removal (CRI-050..057, CRI-066). Functions of a core.

What a started one does is in `running.py`. What must never happen here: a container that is created
of an image that is not there, or started twice.
"""

from __future__ import annotations

import grpc
from kubecri.v1 import api_pb2 as pb

from fakecri.core import running
from fakecri.core.cgroups.resources import complete, copied
from fakecri.core.image_store.image_volumes import resolve_image_volumes
from fakecri.core.messages import START_ERROR
from fakecri.core.names import Name
from fakecri.core.objects import (
    Container,
    ImageUse,
    Input,
    Inside,
    Outcome,
    Output,
    Sandbox,
    State,
    Stop,
)
from fakecri.core.requests import (
    container_name,
    failed_start,
    log_path,
    require_possible,
    require_short_labels,
)
from fakecri.core.runtime import START_FAILED, Core
from fakecri.core.user_namespaces import check_container
from fakecri.errors import CgroupRefused, CriError, unknown
from fakecri.words import stop_signals


def create_container(core: Core, request: pb.CreateContainerRequest) -> Container:
    """CreateContainer: a new container, CREATED. It is checked in the order of containerd.

    Raises CriError, and then there is no container. CRI-051, CRI-052, CRI-024, CRI-040, CRI-100.
    """
    sandbox = _sandbox_for(core, request)
    wanted, pod = request.config, request.sandbox_config.metadata
    name: Name = ("container", container_name(wanted.metadata, pod))
    core.names.require_free(name)
    image = core.images.resolve(wanted.image.image)
    require_possible(wanted)
    require_short_labels(wanted.labels)
    identity, config = core.ids.hex(), copied(wanted)
    check_container(identity, config, sandbox.config)
    volumes = resolve_image_volumes(config, core.images)
    container = Container(
        id=identity,
        sandbox=sandbox,
        config=config,
        pod=copied(pod),
        image=ImageUse(
            image.id,
            image.digests[0] if image.digests else image.id,
            image.accounts,
            image.runs_as,
            volumes,
        ),
        created_at_ns=core.stamp_ns(),
        inside=Inside(core.setup.host_mounts, core.now_ns),
        output=Output(log_path(request)),
        resources=copied(wanted.linux.resources),
        stop=Stop(stop_signals.effective(wanted.stop_signal, image.stop_signal)),
    )
    complete(container.resources)
    core.names.take(name, container.id)
    core.containers[container.id] = sandbox.containers[container.id] = container
    core.tell(pb.CONTAINER_CREATED_EVENT, container.id, sandbox)
    return container


def _sandbox_for(core: Core, request: pb.CreateContainerRequest) -> Sandbox:
    sandbox = core.find_sandbox(request.pod_sandbox_id, "CreateContainer")
    if not sandbox.ready:
        raise CriError(
            grpc.StatusCode.NOT_FOUND,
            "failed to get sandbox container task: no running task found: "
            f"task {sandbox.id} not found: not found",
        )
    if not request.config.HasField("metadata"):
        raise unknown("container config must include metadata")
    if not request.sandbox_config.HasField("metadata"):
        raise unknown("pod sandbox config must include metadata")
    return sandbox


def prepare_start(core: Core, container: Container) -> None:
    """Settle what the run of a container will be, once. Raises CriError unless it is CREATED."""
    if container.state is not State.CREATED:
        raise unknown(
            f'failed to set starting state for container "{container.id}": '
            f"container is in CONTAINER_{container.state.name} state"
        )
    if not container.run.planned:
        container.run.plan, container.run.planned = core.driver.plan_of(container), True


def start_container(core: Core, container: Container) -> None:
    """StartContainer (CRI-055..057); raises CriError, and a failed start leaves it EXITED."""
    prepare_start(core, container)
    failure = container.run.plan.start_fails.message if container.run.plan.start_fails else ""
    if not container.sandbox.ready:
        failure = f'sandbox container "{container.sandbox.id}" is not running'
    if failure:
        raise fail_to_start(core, container, failure)
    try:
        running.begin(core, container)
    except CgroupRefused as refused:
        raise fail_to_start(core, container, failed_start(refused)) from None


def fail_to_start(core: Core, container: Container, why: str) -> CriError:
    """The start fails: EXITED with 128, StartError (CRI-056). The error for the caller."""
    core.change(container, Input.FAIL_TO_START)
    container.outcome = Outcome(core.stamp_ns(), START_FAILED, START_ERROR, why)
    return unknown(why)


def remove_container(core: Core, container: Container) -> None:
    """RemoveContainer (CRI-066): kills a running one; the log file stays. Raises CriError during a
    start."""
    if container.run.starting:
        raise unknown(
            f'failed to set removing state for container "{container.id}": '
            "container is in starting state, can't be removed"
        )
    if container.state in (State.RUNNING, State.UNKNOWN):
        running.kill(core, container)
    drop_container(core, container)
    core.tell(pb.CONTAINER_DELETED_EVENT, container.id, container.sandbox)


def drop_container(core: Core, container: Container) -> None:
    """The container vanishes without a word, as after a lost disk."""
    if container.run.cgroup is not None:
        cgroup, container.run.cgroup = container.run.cgroup, None
        core.charges.burning.pop(container.id, None)
        cgroup.leave()
    if container.id in core.containers:
        del core.containers[container.id]
    core.charges.used.gone(container.id)
    container.sandbox.containers.pop(container.id, None)
    core.names.free(container.id)
