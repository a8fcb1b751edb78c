"""What a stream of Exec or Attach is made of: the runtime's parts, the caller's channels, its end.

The front of a protocol (`over_spdy`, `over_websocket`) makes `Channels` and sends the `Outcome`;
what happens in between is in `execution`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from kubecri.v1 import api_pb2 as pb
from msgspec import Struct

from fakecri import process
from fakecri.clockwork.clockwork import Clockwork
from fakecri.core.objects import Container
from fakecri.core.runtime import Core
from fakecri.programs.known import Known
from fakecri.programs.main_programs import MainPrograms
from fakecri.programs.ports import Ports


class Outcome(Struct, frozen=True):
    """How a command or an attach ended: with the `exit_code` of the command, or with a `failure`,
    the text of why there is none. It is sent on the error channel (metav1.Status; CRI-115)."""

    exit_code: int = 0
    failure: str = ""

    def text(self) -> str:
        """The outcome in one line; "" for success. Protocols before v4 carry nothing else."""
        if self.failure:
            return f"Internal error occurred: {self.failure}"
        if self.exit_code:
            return f"command terminated with non-zero exit code: exit status {self.exit_code}"
        return ""

    def to_json(self) -> bytes:
        """The outcome as the Status object that v4 and v5 carry."""
        if not self.text():
            return b'{"metadata":{},"status":"Success"}'
        status: dict[str, Any] = {"metadata": {}, "status": "Failure", "message": self.text()}
        if self.failure:
            status |= {"reason": "InternalError", "code": 500}
        else:
            cause = {"reason": "ExitCode", "message": str(self.exit_code)}
            status |= {"reason": "NonZeroExitCode", "details": {"causes": [cause]}}
        return json.dumps(status, separators=(",", ":")).encode()


class Runtime(Struct, frozen=True, eq=False):
    """The parts of a fake runtime that streams use."""

    core: Core
    clockwork: Clockwork
    main_programs: MainPrograms
    programs_of: Callable[[Container], Known]
    ports: Ports


class Channels(Struct, eq=False):
    """The streams of one caller; None: the caller did not ask for that one."""

    stdin: asyncio.StreamReader | None = None
    stdout: process.Output | None = None
    stderr: process.Output | None = None
    resize: asyncio.StreamReader | None = None


Work = Callable[[Channels], Awaitable[Outcome]]
"""`execute` or `attach` with all arguments but the channels."""


def wanted_of(request: pb.ExecRequest | pb.AttachRequest) -> frozenset[str]:
    """The names of the streams that a request asks for: stdin, stdout, stderr, resize."""
    flags = {
        "stdin": request.stdin,
        "stdout": request.stdout,
        "stderr": request.stderr,
        "resize": request.tty,
    }
    return frozenset(name for name, is_on in flags.items() if is_on)
