"""Sockets of plug-ins below plugins_registry, over gRPC.

Only for real time, because grpc uses its own threads; it is imported when a plug-in is there.
"""

from __future__ import annotations

from refkubelet.host.plugin_socket import PluginSocket, dialled


class GrpcSockets:
    """`RegistrationSockets` of this machine."""

    async def connect(self, path: str) -> PluginSocket:
        """The Registration service. Raises OSError, as `dialled`."""
        from kubecri.pluginregistration.api_pb2_grpc import RegistrationStub

        return await dialled(path, RegistrationStub)
