"""Whether this node can enforce the AppArmor profiles a pod asks for (LIFE-227). Pure.

Asked only before the pod has run. Upstream: pkg/security/apparmor/validate.go,
pkg/kubelet/lifecycle/handlers.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from refkubelet.admission.admit_handler import Check, PodAdmitAttributes, Rejection
from refkubelet.model.objects import Pod
from refkubelet.model.pod import all_containers
from refkubelet.model.pod import annotations as pod_annotations

OLD_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"


def apparmor_enforceable(enabled: bool) -> Check:
    """The handler. `enabled`: the kernel has AppArmor switched on."""

    def handler(asked: PodAdmitAttributes) -> Rejection | None:
        pod = asked.pod
        phase = pod.status.phase if pod.status is not None else None
        if enabled or phase not in (None, "", "Pending") or not wants_apparmor(pod):
            return None
        text = "Cannot enforce AppArmor: AppArmor is not enabled on the host"
        return Rejection("AppArmor", text)

    return handler


def wants_apparmor(pod: Pod) -> bool:
    """Whether the pod, one of its containers or an old annotation names a profile other than
    Unconfined."""
    return any(name.lower() != "unconfined" for name in _profiles(pod))


def _profiles(pod: Pod) -> Iterator[str]:
    for owner in (pod.spec, *all_containers(pod)):
        context = owner.securityContext
        if context is not None and context.appArmorProfile is not None:
            yield context.appArmorProfile.type
    for key, value in pod_annotations(pod).items():
        if key.startswith(OLD_ANNOTATION):
            yield value
