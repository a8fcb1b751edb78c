"""Calls that break off in the middle, as when the network plug-in, a disk or a shim fails them.

For each method: what has happened by then, and the words of the error. Functions of a core. What
must never happen here: a state that no runtime can be in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kubecri.v1 import api_pb2 as pb

from fakecri.core import running
from fakecri.core.containers import fail_to_start, prepare_start, remove_container
from fakecri.core.objects import State
from fakecri.core.runtime import Core
from fakecri.core.sandboxes import lose_sandbox, run_sandbox

_BUSY: Final = "device or resource busy"
_BRIDGE: Final = 'plugin type="bridge" failed'


def _run(core: Core, request: pb.RunPodSandboxRequest) -> str:
    """The roll-back fails too: the sandbox stays, NOTREADY, and keeps its name (CRI-032)."""
    sandbox = run_sandbox(core, request.config, request.runtime_handler)
    lose_sandbox(core, sandbox)
    return f'failed to setup network for sandbox "{sandbox.id}": {_BRIDGE} (add)'


def _stop_sandbox(core: Core, request: pb.StopPodSandboxRequest) -> str:
    """Everything is dead, the network is not torn down (CRI-037)."""
    sandbox = core.find_sandbox(request.pod_sandbox_id)
    for container in core.containers_of(sandbox):
        if container.state is State.RUNNING:
            running.kill(core, container)
    lose_sandbox(core, sandbox)
    return f'failed to destroy network for sandbox "{sandbox.id}": {_BRIDGE} (delete)'


def _remove_sandbox(core: Core, request: pb.RemovePodSandboxRequest) -> str:
    """Its containers are gone, it stays."""
    sandbox = core.find_sandbox(request.pod_sandbox_id)
    lose_sandbox(core, sandbox)
    for container in core.containers_of(sandbox):
        remove_container(core, container)
    return f'failed to remove sandbox root directory of "{sandbox.id}": {_BUSY}'


def _start(core: Core, request: pb.StartContainerRequest) -> str:
    """EXITED, StartError (CRI-056)."""
    container = core.find_container(request.container_id)
    prepare_start(core, container)
    why = "failed to create containerd task: failed to start shim: signal: killed"
    return str(fail_to_start(core, container, why).details())


def _stop(core: Core, request: pb.StopContainerRequest) -> str:
    """The stop signal is delivered, and that is all (CRI-063)."""
    container = core.find_container(request.container_id)
    running.signal(core, container)
    return f'failed to stop container "{container.id}": context canceled'


def _remove(core: Core, request: pb.RemoveContainerRequest) -> str:
    """It is killed, but stays."""
    container = core.find_container(request.container_id)
    running.kill(core, container)
    return f'failed to remove container root directory of "{container.id}": {_BUSY}'


HALVES: Final[dict[str, Callable[[Core, Any], str]]] = {
    "RunPodSandbox": _run,
    "StopPodSandbox": _stop_sandbox,
    "RemovePodSandbox": _remove_sandbox,
    "StartContainer": _start,
    "StopContainer": _stop,
    "RemoveContainer": _remove,
}
"""Does the first half of a call; the text of its failure."""
