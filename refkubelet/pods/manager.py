"""The pod manager: the pods that this node should run, and the mirrors of its static pods. No I/O.

A mirror pod is not one of the desired pods (MIRR-020). A static pod and its mirror have the same
full name, and nothing else in common. Upstream: pkg/kubelet/pod/pod_manager.go.
"""

from __future__ import annotations

from refkubelet.model.objects import Pod
from refkubelet.model.pod import full_name, is_mirror, is_static, uid


class PodManager:
    """The desired state of the node, in memory."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._mirrors: dict[str, Pod] = {}
        self._by_name: dict[str, Pod] = {}
        self._mirror_by_name: dict[str, Pod] = {}
        self._static_uids: dict[str, str] = {}  # UID of the mirror -> UID of its static pod
        self._listed: tuple[Pod, ...] | None = None  # cached until the next change
        self._all: tuple[Pod, ...] | None = None

    def update(self, pod: Pod) -> None:
        """Store the pod; of pods with equal full names the last one owns the name (SRC-067)."""
        self._listed = self._all = None
        mirror = is_mirror(pod)
        (self._mirrors if mirror else self._pods)[uid(pod)] = pod
        (self._mirror_by_name if mirror else self._by_name)[full_name(pod)] = pod
        self._note_translation(full_name(pod))

    def _note_translation(self, name: str) -> None:
        """Record which mirror UID belongs to which static pod. The entry outlives the static pod,
        whose last status the mirror still gets (golden s20)."""
        static, mirror = self._by_name.get(name), self._mirror_by_name.get(name)
        if static is not None and mirror is not None and is_static(static):
            self._static_uids[uid(mirror)] = uid(static)

    def remove(self, pod: Pod) -> None:
        """Forget the pod; a newer pod of the same full name keeps that name."""
        self._listed = self._all = None
        mirror = is_mirror(pod)
        (self._mirrors if mirror else self._pods).pop(uid(pod), None)
        self._static_uids.pop(uid(pod), None)
        names = self._mirror_by_name if mirror else self._by_name
        owner = names.get(full_name(pod))
        if owner is not None and uid(owner) == uid(pod):
            del names[full_name(pod)]

    def pods(self) -> tuple[Pod, ...]:
        """Regular and static pods, without mirrors, in order of arrival; the same object until the
        next change."""
        if self._listed is None:
            self._listed = tuple(self._pods.values())
        return self._listed

    def pods_and_mirrors(self) -> tuple[Pod, ...]:
        """All pods, mirrors included; the same object until the next change."""
        if self._all is None:
            self._all = (*self._pods.values(), *self._mirrors.values())
        return self._all

    def get(self, uid: str) -> Pod | None:
        """The regular or static pod with that UID, never a mirror (MIRR-001); or None."""
        return self._pods.get(uid)

    def by_name(self, namespace: str, name: str) -> Pod | None:
        """The regular or static pod of that name, never a mirror; or None."""
        return self._by_name.get(f"{name}_{namespace}")

    def mirror_of(self, pod: Pod) -> Pod | None:
        """The mirror of a static pod, or None."""
        return self._mirror_by_name.get(full_name(pod)) if is_static(pod) else None

    def static_of(self, mirror: Pod) -> Pod | None:
        """The static pod of a mirror; None: the mirror is an orphan (MIRR-031)."""
        pod = self._by_name.get(full_name(mirror))
        return pod if pod is not None and is_static(pod) else None

    def orphan_mirrors(self) -> tuple[Pod, ...]:
        """Mirrors without a pod of their full name (MIRR-031, MIRR-033)."""
        return tuple(m for n, m in self._mirror_by_name.items() if n not in self._by_name)

    def translate_uid(self, pod_uid: str) -> str:
        """The static pod's UID for a mirror's, even after the static pod was removed; any other UID
        unchanged (MIRR-034)."""
        return self._static_uids.get(pod_uid, pod_uid)
