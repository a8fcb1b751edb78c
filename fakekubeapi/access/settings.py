"""Who clients and pods are, and what they may do, in one place: tests change it in use."""

from __future__ import annotations

from dataclasses import dataclass, field

from fakekubeapi.access.certificates import CertificateAuthority
from fakekubeapi.access.policy import AccessPolicy
from fakekubeapi.access.signing import Signing
from fakekubeapi.access.users import Users


@dataclass
class AccessSettings:
    """The tables, empty at first, and who signs."""

    users: Users = field(default_factory=Users)
    access: AccessPolicy = field(default_factory=AccessPolicy)
    service_account_admission: bool = False
    """Whether new pods get an account and the volume with its token, and namespaces
    kube-root-ca.crt."""
    authority: CertificateAuthority | None = None
    """Signs approved certificate requests; None: they stay without a certificate."""
    signing: Signing = field(default_factory=Signing)
    """Which requests are approved or denied, and for how long certificates are valid."""

    def __post_init__(self) -> None:
        self.access.is_known = self.users.knows
