"""Exec, Attach and PortForward of the fake, with real bytes both ways (CRI-115, CRI-116).

    cri.streaming.command("ls", my_ls)              # a program in every container
    cri.streaming.forward(80, to=my_handler)        # what listens on a port of a pod

`spdy*.py` is SPDY/3.1 without I/O, `connections.py` and `websockets.py` carry streams over it and
over WebSocket, `commands.py` and `shell.py` are the programs, `server.py` is what listens. Real
time only: a virtual loop has no sockets.
"""

from __future__ import annotations
