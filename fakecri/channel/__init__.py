"""gRPC channels without a socket: what a client's stubs take, answered in the same process.

`aio.py` is the channel for asyncio stubs, `blocking.py` and
`blocking_calls.py` the one for synchronous stubs, `rpc.py` the
call between either and the handlers of a server. Every message goes over as bytes, so the client
may use any stubs, and a call takes no time but the one that the fake takes: in virtual time hours
pass at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.channel.aio import InProcessChannel as InProcessChannel
    from fakecri.channel.blocking import BlockingChannel as BlockingChannel
else:
    __getattr__, __dir__ = face(
        __name__, {"aio": "InProcessChannel", "blocking": "BlockingChannel"}
    )
