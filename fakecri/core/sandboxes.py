"""What happens to sandboxes: run, stop, loss, removal (CRI-030..039). Functions of a core.

What must never happen here: a sandbox that is NOTREADY becomes READY again, or a failed run leaves
a name behind.
"""

from __future__ import annotations

from typing import Final

from kubecri.v1 import api_pb2 as pb

from fakecri import cgroupfs
from fakecri.core import running, user_namespaces
from fakecri.core.addresses import NoAddressLeft
from fakecri.core.cgroups.resources import copied
from fakecri.core.containers import remove_container
from fakecri.core.lookups import lookup
from fakecri.core.names import Name
from fakecri.core.objects import Sandbox, State
from fakecri.core.requests import (
    failed_start,
    require_short_labels,
    sandbox_name,
    sysctl_refusal,
)
from fakecri.core.runtime import Core
from fakecri.errors import CgroupRefused, unknown

NO_NETWORK: Final = "cni plugin not initialized"
_LONGEST_ARGUMENT_BYTES: Final = 128 * 1024
PAUSE_OOM_SCORE_ADJ: Final = -998
_PAUSE_RESOURCES: Final = pb.LinuxContainerResources(cpu_shares=2)


def run_sandbox(core: Core, config: pb.PodSandboxConfig, handler: str) -> Sandbox:
    """RunPodSandbox (CRI-030): READY at once, with addresses unless on the host's network."""
    if not config.HasField("metadata"):
        raise unknown("sandbox config must include metadata")
    name: Name = ("sandbox", sandbox_name(config.metadata))
    core.names.require_free(name)
    if handler and handler not in core.setup.handlers:
        raise unknown(
            f'failed to get sandbox runtime: no runtime for "{lookup.shown(handler)}" is configured'
        )
    sandbox = Sandbox(core.ids.hex(), copied(config), handler, core.stamp_ns())
    options = config.linux.security_context.namespace_options
    user_namespaces.check_sandbox(sandbox.id, options)
    if options.network != pb.NODE:
        _set_up_network(core, sandbox, name[1])
    if why := sysctl_refusal(config):
        sandbox.ips = ()
        raise unknown(failed_start(why))
    require_short_labels(config.labels)
    if config.linux.cgroup_parent:
        _enter_cgroup(core, sandbox)
    core.names.take(name, sandbox.id)
    core.sandboxes[sandbox.id] = sandbox
    core.tell(pb.CONTAINER_CREATED_EVENT, sandbox.id, sandbox)
    core.tell(pb.CONTAINER_STARTED_EVENT, sandbox.id, sandbox)
    return sandbox


def _enter_cgroup(core: Core, sandbox: Sandbox) -> None:
    """The pause process; when it dies, the sandbox is lost."""

    def died(_: cgroupfs.Process) -> None:
        lose_sandbox(core, sandbox)
        core.driver.stir()

    try:
        sandbox.cgroup = core.enter_cgroup(
            sandbox.config.linux.cgroup_parent,
            sandbox.id,
            _PAUSE_RESOURCES,
            name="pause",
            oom_score_adj=PAUSE_OOM_SCORE_ADJ,
            died=died,
        )
    except CgroupRefused as refused:
        raise unknown(failed_start(refused)) from None


def _set_up_network(core: Core, sandbox: Sandbox, name: str) -> None:
    why = "" if core.network.ready else NO_NETWORK
    if len(name) > _LONGEST_ARGUMENT_BYTES:  # network plugins get it as one variable
        why = (
            'plugin type="bridge" failed (add): netplugin failed with no error message: '
            "argument list too long"
        )
    if why:
        raise unknown(f'failed to setup network for sandbox "{sandbox.id}": {why}')
    try:
        sandbox.ips = core.next_addresses()
    except NoAddressLeft as error:
        why = f'plugin type="bridge" failed (add): {error}'
        raise unknown(f'failed to setup network for sandbox "{sandbox.id}": {why}') from None


def stop_sandbox(core: Core, sandbox: Sandbox) -> None:
    """StopPodSandbox (CRI-036): kills what runs, then NOTREADY without address. Repeatable.

    Raises CriError while the node has no network (CRI-037): then everything is dead, but the
    address stays, and so it goes until the network is back.
    """
    for container in core.containers_of(sandbox):
        if container.state in (State.RUNNING, State.UNKNOWN):
            running.kill(core, container)
    lose_sandbox(core, sandbox)
    if sandbox.ip and not core.network.ready:
        raise unknown(f'failed to destroy network for sandbox "{sandbox.id}": {NO_NETWORK}')
    sandbox.ips = ()


def lose_sandbox(core: Core, sandbox: Sandbox) -> None:
    """The sandbox process dies: NOTREADY, address kept; containers run on, but for those in the
    process namespace of the pod, whose first process it was (CRI-039)."""
    if sandbox.ready:
        sandbox.ready = False
        core.sandboxes.changed()
        if sandbox.cgroup is not None:
            cgroup, sandbox.cgroup = sandbox.cgroup, None
            cgroup.leave()
        core.tell(pb.CONTAINER_STOPPED_EVENT, sandbox.id, sandbox)
        for container in core.containers_of(sandbox):
            if container.config.linux.security_context.namespace_options.pid == pb.POD:
                running.kill(core, container)


def remove_sandbox(core: Core, sandbox: Sandbox) -> None:
    """RemovePodSandbox (CRI-038): stops it, removes its containers, then itself."""
    stop_sandbox(core, sandbox)
    for container in core.containers_of(sandbox):
        remove_container(core, container)
    del core.sandboxes[sandbox.id]
    core.names.free(sandbox.id)
    core.tell(pb.CONTAINER_DELETED_EVENT, sandbox.id, sandbox)
