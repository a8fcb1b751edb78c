"""Names and paths that outlive a kubelet: log directories, pod directories.

Rules: GC-011, GC-201 (logs), NODE-200 (root directory). Upstream: kubelet_getters.go and
kuberuntime/helpers.go in pkg/kubelet.
"""

from __future__ import annotations

from posixpath import join


def pod_log_dir(logs_root: str, namespace: str, name: str, uid: str) -> str:
    """`<logs root>/<namespace>_<name>_<uid>`: log_directory of RunPodSandbox."""
    return join(logs_root, f"{namespace}_{name}_{uid}")


def container_log_path(container: str, restart_count: int) -> str:
    """`<container>/<restart count>.log`, below the pod's log directory."""
    return f"{container}/{restart_count}.log"


def parse_pod_log_dir(entry: str) -> tuple[str, str, str] | None:
    """(namespace, name, uid) of a log directory's name; None for anything else.

    >>> parse_pod_log_dir("default_web-n1_0123")
    ('default', 'web-n1', '0123')
    """
    parts = entry.split("_")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 and all(parts) else None


def pod_dir(root_dir: str, uid: str) -> str:
    return join(root_dir, "pods", uid)


def pod_volume_dir(root_dir: str, uid: str, plugin: str, volume: str) -> str:
    """`plugin` as in `kubernetes.io/empty-dir`; `/` becomes `~` on disk."""
    return join(pod_dir(root_dir, uid), "volumes", plugin.replace("/", "~"), volume)


def container_dir(root_dir: str, uid: str, container: str) -> str:
    """Where termination logs of a container live."""
    return join(pod_dir(root_dir, uid), "containers", container)
