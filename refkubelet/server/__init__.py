"""The kubelet's HTTP servers."""

from refkubelet.server.servers import KubeletServers, ServerCallbacks, ServerError

__all__ = ["KubeletServers", "ServerCallbacks", "ServerError"]
