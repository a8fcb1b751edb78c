"""The attribute `streaming` of a `FakeCRI`: programs for streams, and the server behind their URLs.

The server starts at the first Exec, Attach or PortForward and lives until `stop` or the end of its
loop; a fake that is used on another loop starts another. No socket is opened in virtual time.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import grpc
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb

from fakecri import streaming
from fakecri.errors import CriError
from fakecri.streaming.session import Runtime
from fakecri.streaming.stream_rules import Programs
from fakecri.streaming.tokens import Tokens
from simclock import Clock, VirtualLoop

RESPONSES: Final[dict[type[Any], type[Any]]] = {
    pb.ExecRequest: pb.ExecResponse,
    pb.AttachRequest: pb.AttachResponse,
    pb.PortForwardRequest: pb.PortForwardResponse,
}


class Streaming(Programs):
    """The streams of one fake runtime. `command`, `attach` and `forward` say what they reach."""

    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        super().__init__()
        self._runtime = runtime
        self._tokens = Tokens(clock)
        self._server: streaming.StreamingServer | None = None
        self._starting = asyncio.Lock()
        self.host = "127.0.0.1"
        """Where the server listens. Set it, and `port`, before the first request."""
        self.port = 0
        """0: a free port."""

    async def answer(self, request: Message) -> Any:
        """The response, with a URL, to a request that was checked already.

        Raises CriError: UNIMPLEMENTED in virtual time, RESOURCE_EXHAUSTED while too many requests
        wait for their connection.
        """
        if isinstance(asyncio.get_running_loop(), VirtualLoop):
            raise CriError(
                grpc.StatusCode.UNIMPLEMENTED,
                "streams need real time and sockets: run the fake on an ordinary loop or with "
                "fakecri.server.serve; in virtual time use ExecSync",
            )
        async with self._starting:
            if self._server is None or not self._server.lives:
                server = streaming.StreamingServer(self._runtime, self, self._tokens)
                await server.start(self.host, self.port)
                self._server = server
        copy = type(request)()
        copy.CopyFrom(request)
        return RESPONSES[type(request)](url=self._server.url(self._tokens.put(copy), copy))

    def cut(self) -> None:
        """Break all connections and forget all URLs, as a crash of the runtime does. Programs stay
        known."""
        self._tokens.forget()
        if self._server is not None:
            self._server.cut()

    async def stop(self) -> None:
        """End every stream and the server; the next request starts a new one."""
        async with self._starting:
            server, self._server = self._server, None
            if server is not None:
                await server.stop()
