"""The kubelet's HTTP servers."""

from refkubelet.server.servers import (
    KubeletServers,
    ServerCallbacks,
    ServerError,
    check_servers,
)

__all__ = ["KubeletServers", "ServerCallbacks", "ServerError", "check_servers"]
