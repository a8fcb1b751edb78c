"""Exec, Attach and PortForward of the fake, with real bytes both ways (CRI-115, CRI-116).

    cri.streaming.command("ls", my_ls)            # a program in every container
    cri.streaming.forward(80, to=my_handler)      # what listens on a port of a pod

Read `host` first, which starts the `server`. `fronts`, `over_spdy` and `over_websocket` speak the
protocols (`spdy*` is SPDY/3.1 without I/O); `execution` and `forwarding` do the work. In real time
only: a virtual loop has no sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.streaming.server import StreamingServer as StreamingServer
else:
    __getattr__, __dir__ = face(__name__, {"server": "StreamingServer"})
