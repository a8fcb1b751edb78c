"""What happens to certificate signing requests, by signer: they are approved, denied, or left for
another client.

In a cluster kube-controller-manager approves those that kubelets make for their client
certificates; those for serving certificates wait for an administrator. Here a test decides, and
says how long certificates are valid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from fakekubeapi.access.certificates import YEAR_S
from kubeobjects.arguments import arguments_told

CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
SIGNERS: Final = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING)
"""Whose requests are signed here; those of other signers are for programs of their own."""
OF_KUBELETS: Final = (KUBELET_CLIENT, KUBELET_SERVING)


class Verdict(Struct, frozen=True):
    """The condition that an approver sets: Approved or Denied, with why."""

    type: str
    reason: str
    message: str


_APPROVED: Final = Verdict("Approved", "AutoApproved", "approved by the fake API server")


@arguments_told
@dataclass
class Signing:
    """Nothing is decided at first. What a method says holds for requests that come from then on;
    `signers` empty: those of kubelets, for client and for serving."""

    lasts_s: int = YEAR_S
    """How long certificates are valid whose requests do not say it (`--cluster-signing-duration`
    of kube-controller-manager)."""
    _verdicts: dict[str, Verdict] = field(default_factory=dict)

    def approve(self, *signers: str) -> None:
        """Approve requests for these signers as soon as they are there."""
        self._set(signers, _APPROVED)

    def deny(self, *signers: str, reason: str = "Denied", message: str = "by a test") -> None:
        """Deny requests for these signers as soon as they are there."""
        self._set(signers, Verdict("Denied", reason, message))

    def leave(self, *signers: str) -> None:
        """Decide nothing about requests for these signers; another client may, through
        `/approval`."""
        for signer in signers or OF_KUBELETS:
            self._verdicts.pop(signer, None)

    def verdict(self, signer: str) -> Verdict | None:
        """What is decided about requests for that signer; None: nothing."""
        return self._verdicts.get(signer)

    def _set(self, signers: tuple[str, ...], verdict: Verdict) -> None:
        for signer in signers or OF_KUBELETS:
            self._verdicts[signer] = verdict
