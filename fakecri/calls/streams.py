"""What Exec, Attach and PortForward are refused for (CRI-116)."""

from __future__ import annotations

import grpc
from criapi.v1 import api_pb2 as pb

from fakecri.core.objects import State
from fakecri.core.runtime import Core
from fakecri.errors import CriError, unknown


def check_streams(
    core: Core, request: pb.ExecRequest | pb.AttachRequest | pb.PortForwardRequest
) -> None:
    """CRI-116, in the order of containerd: unknown id, not RUNNING, no stream at all, tty with
    stderr. Raises: CriError."""
    if isinstance(request, pb.PortForwardRequest):
        if not core.find_sandbox(request.pod_sandbox_id, "PortForward").ready:
            raise unknown("sandbox container is not running")
        return
    method = "Exec" if isinstance(request, pb.ExecRequest) else "Attach"
    container = core.find_container(request.container_id, method)
    if container.state is not State.RUNNING:
        raise unknown(f"container is in CONTAINER_{container.state.name} state")
    if not (request.stdin or request.stdout or request.stderr):
        text = "one of stdin, stdout, or stderr must be set"
        raise CriError(grpc.StatusCode.INVALID_ARGUMENT, text)
    if request.tty and request.stderr:
        text = "tty and stderr cannot both be true"
        raise CriError(grpc.StatusCode.INVALID_ARGUMENT, text)
