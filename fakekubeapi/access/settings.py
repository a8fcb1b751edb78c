"""What a test sets of users, access, service accounts, certificates and other behaviour, in one
place."""

from __future__ import annotations

from dataclasses import dataclass, field

from fakekubeapi.access.certificates import CertificateAuthority
from fakekubeapi.access.policy import AccessPolicy
from fakekubeapi.access.signing import Signing
from fakekubeapi.access.users import Users
from fakekubeapi.kubelets.options import KubeletOptions
from kubeobjects.schema.messages import Schema, schema_of


@dataclass
class AccessSettings:
    """The tables, empty at first, and two switches."""

    users: Users = field(default_factory=Users)
    access: AccessPolicy = field(default_factory=AccessPolicy)
    service_account_admission: bool = False
    """Whether new pods get an account and the volume with its token, and namespaces
    kube-root-ca.crt."""
    authority: CertificateAuthority | None = None
    """Signs approved certificate requests; None: they stay without a certificate."""
    signing: Signing = field(default_factory=Signing)
    """Which requests are approved or denied, and for how long certificates are valid."""

    field_managers: bool = False
    """Whether all objects have `managedFields`, and not only those that are applied."""
    bookmark_every_s: float | None = None
    """How often watches get a bookmark; None: after initial events and at their time-out only."""

    schema: Schema = field(default_factory=schema_of)
    """The types of the minor that is served."""
    kubelets: KubeletOptions = field(default_factory=KubeletOptions)
    """How to reach kubelets, for logs, exec and the like."""

    def __post_init__(self) -> None:
        self.access.is_known = self.users.knows
