"""Whether a read-only mount is so all the way down. Pure.

What must never happen here: a mount that must be read-only below is not, and nobody hears of it.
Upstream: pkg/kubelet/kubelet_pods.go: resolveRecursiveReadOnly.
"""

from __future__ import annotations

from lightkube.models.core_v1 import VolumeMount

from refkubelet.golang.strconv import quoted


def recursive_read_only(mount: VolumeMount, supported: bool) -> bool:
    """Whether everything below the mount is read-only, too. Raises ValueError where it must be and
    cannot."""
    mode = mount.recursiveReadOnly
    if mode in (None, "Disabled"):
        return False
    wish = f"volume {quoted(mount.name)} requested recursive read-only mode, but it is not"
    if not mount.readOnly:
        raise ValueError(f"{wish} read-only")
    if mount.mountPropagation not in (None, "None"):
        raise ValueError(f"{wish} compatible with propagation {quoted(mount.mountPropagation)}")
    if mode == "Enabled" and not supported:
        raise ValueError(f"{wish} supported by the runtime")
    if mode not in ("Enabled", "IfPossible"):
        raise ValueError(f"unknown recursive read-only mode {quoted(mode)}")
    return supported
