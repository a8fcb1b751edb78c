"""Which places of the machine a kubelet takes for itself.

Upstream keeps links to logs of containers in one fixed directory, whatever the flags say, and logs
of pods by default in another; so two kubelets on one machine remove each other's. Here those places
are for the kubelet with the usual root directory, the machine's own. Any other one (of a test, of a
pool of nodes, beside the machine's) keeps all it writes below its root directory, unless the
configuration names a place. Rules: LIFE-136, GC-011, NODE-064, NODE-200.
Upstream: pkg/kubelet/kubelet.go: ContainerLogsDir; pkg/kubelet/apis/config/v1beta1/defaults.go.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT_DIR: Final = Path("/var/lib/kubelet")
"""The root directory of the machine's own kubelet."""
POD_LOGS: Final = Path("/var/log/pods")
CONTAINER_LOGS: Final = Path("/var/log/containers")
LOGIND_CONFIG: Final = Path("/etc/systemd/logind.conf.d/99-kubelet.conf")
_LOGS: Final = "logs"
"""Below the root directory of other kubelets."""


def default_pod_logs_dir(root_dir: Path) -> Path:
    """The directory of pod logs where the configuration names none.

    >>> default_pod_logs_dir(Path("/var/lib/kubelet")), default_pod_logs_dir(Path("/tmp/k"))
    (PosixPath('/var/log/pods'), PosixPath('/tmp/k/logs/pods'))
    """
    return POD_LOGS if root_dir == ROOT_DIR else root_dir / _LOGS / "pods"


def container_logs_dir(root_dir: Path, pod_logs_dir: Path) -> Path:
    """The directory of links to logs of containers. A kubelet that was told to keep its logs in the
    machine's directory makes the links in the machine's, too: what collects logs looks there.

    >>> container_logs_dir(Path("/tmp/k"), Path("/tmp/k/logs/pods"))
    PosixPath('/tmp/k/logs/containers')
    """
    if root_dir == ROOT_DIR or pod_logs_dir == POD_LOGS:
        return CONTAINER_LOGS
    return root_dir / _LOGS / "containers"


def logind_config(root_dir: Path) -> Path | None:
    """The file in which logind is told of longer shutdowns; None: only the machine's own kubelet
    changes the machine's settings."""
    return LOGIND_CONFIG if root_dir == ROOT_DIR else None
