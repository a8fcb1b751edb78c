"""Paths of the directories and files of logs, pods and volumes. Pure.

`safe_join` checks every name of pods, users and plugins that becomes part of a path. What must
never happen here: a path leads out of its root.
Rules: GC-011, GC-201 (logs), NODE-200 (root directory). Upstream: kubelet_getters.go and
kuberuntime/helpers.go in pkg/kubelet.
"""

from __future__ import annotations

from typing import Final

MAX_NAME_BYTES: Final = 255  # of one part of a path
GOING: Final = ".removed-"
"""How the names of directories in `pods` begin that are being removed: they are of no pod."""


class UnsafeNameError(ValueError):
    """A name cannot be part of a path; the text shows it."""


def safe_join(root: str, *names: str) -> str:
    """The path `root/name/...`, each name a single part of it. Raises `UnsafeNameError`.

    >>> safe_join("/var/lib/kubelet", "pods", "0123")
    '/var/lib/kubelet/pods/0123'
    """
    for name in names:
        why = name_problem(name)
        if why is not None:
            name_part = name if len(name) <= MAX_NAME_BYTES else f"{name[:MAX_NAME_BYTES]}..."
            raise UnsafeNameError(f"{name_part!r} cannot be part of a path: {why}")
    if not root or root.endswith("/"):
        return root + "/".join(names)
    return "/".join((root, *names))


def safe_path(root: str, path: str) -> str:
    """`root` joined with a relative path of several parts. Raises `UnsafeNameError`, also for an
    absolute or empty path.

    >>> safe_path("/seccomp", "own//web.json")
    '/seccomp/own/web.json'
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or not parts:
        raise UnsafeNameError(f"{path!r} cannot be part of a path: it must be a relative path")
    return safe_join(root, *parts)


def name_problem(name: str) -> str | None:
    """Why the name cannot be one part of a path; None: it can.

    >>> name_problem(".."), name_problem("a/b"), name_problem("a")
    ("it must not be '', '.' or '..'", "it must not contain '/' or a zero byte", None)
    """
    if name in ("", ".", ".."):
        return "it must not be '', '.' or '..'"
    if "/" in name or "\0" in name:
        return "it must not contain '/' or a zero byte"
    if len(name) <= MAX_NAME_BYTES // 4:  # no character has more than four bytes
        return None
    if len(name.encode(errors="surrogateescape")) > MAX_NAME_BYTES:
        return f"it must not have more than {MAX_NAME_BYTES} bytes"
    return None


def pod_log_dir(logs_root: str, namespace: str, name: str, uid: str) -> str:
    """`<logs root>/<namespace>_<name>_<uid>`: log_directory of RunPodSandbox."""
    return safe_join(logs_root, f"{namespace}_{name}_{uid}")


def container_log_path(container: str, restart_count: int) -> str:
    """`<container>/<restart count>.log`, below the pod's log directory."""
    return safe_join("", container, f"{restart_count}.log")


def log_link(directory: str, namespace: str, pod: str, container: str, container_id: str) -> str:
    """The link to a container's log, `<pod>_<namespace>_<container>-<id>.log` in the directory of
    links, the first part of its name cut so that it fits. Raises `UnsafeNameError`.

    >>> log_link("/var/log/containers", "default", "web-n1", "main", "c1")
    '/var/log/containers/web-n1_default_main-c1.log'
    """
    ending = f"-{container_id}.log"
    front = f"{pod}_{namespace}_{container}"
    return safe_join(directory, front[: MAX_NAME_BYTES - len(ending)] + ending)


def parse_pod_log_dir(entry: str) -> tuple[str, str, str] | None:
    """(namespace, name, uid) of a log directory's name; None for anything else.

    >>> parse_pod_log_dir("default_web-n1_0123")
    ('default', 'web-n1', '0123')
    """
    parts = entry.split("_")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 and all(parts) else None


def pod_dir(root_dir: str, uid: str) -> str:
    """`<root>/pods/<uid>`. Raises `UnsafeNameError`, as the functions below."""
    return safe_join(root_dir, "pods", uid)


def pod_volume_dir(root_dir: str, uid: str, plugin: str, volume: str) -> str:
    """A volume's directory in its pod's. `plugin` as in `kubernetes.io/empty-dir`; its `/` becomes
    `~` on disk."""
    return safe_join(pod_dir(root_dir, uid), "volumes", plugin.replace("/", "~"), volume)


def container_dir(root_dir: str, uid: str, container: str) -> str:
    """The directory of a container's termination logs."""
    return safe_join(pod_dir(root_dir, uid), "containers", container)
