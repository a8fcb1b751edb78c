"""Sockets of CSI drivers, over gRPC.

Only for real time, because grpc uses its own threads; it is imported when a driver is there.
"""

from __future__ import annotations

import socket
from contextlib import suppress

from refkubelet.host.plugin_socket import PluginSocket


class GrpcCsiSockets:
    """`CsiSockets` of this machine."""

    def connect(self, path: str) -> PluginSocket:
        """The Node service. Raises OSError if nothing listens there, which gRPC would tell in its
        own words."""
        from kubecri.csi.api_pb2_grpc import NodeStub

        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            with suppress(BlockingIOError):  # many wait before us
                probe.connect(path)
        return PluginSocket(path, NodeStub)
