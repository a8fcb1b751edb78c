"""The kubelet's HTTP servers."""

from refkubelet.server.http import (
    KubeletServers,
    ServerCallbacks,
    ServerError,
    check_servers,
)

__all__ = ["KubeletServers", "ServerCallbacks", "ServerError", "check_servers"]
