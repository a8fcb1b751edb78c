"""Decides which pods may use an image that is present on the node (BACK-210..212). Pure.

The kubelet keeps a record of each image that it pulled: for each name, whether every pod may use
it, or the secrets it was pulled with. What must never happen: an image pulled with one pod's secret
runs in another pod that has not proved that it may pull it.
Upstream: pkg/kubelet/images/pullmanager/image_pull_manager.go, image_pull_policies.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from kubeobjects.structs import replace
from refkubelet.kuberuntime.images.keyring import (
    Credential,
    SecretSource,
    ServiceAccountSource,
)
from refkubelet.model.image_names import without_tag

SECRETS_KEPT: Final = 100  # a verification adds no secret to a record with this many


class SecretUse(Struct, frozen=True):
    """A pull secret, and the hash of the credential that was used."""

    namespace: str
    name: str
    uid: str
    hash: str = ""

    def same_secret(self, other: SecretUse) -> bool:
        """The same object at the API server, whatever it holds."""
        return (self.namespace, self.name, self.uid) == (other.namespace, other.name, other.uid)

    def same_credential(self, other: SecretUse) -> bool:
        """The same login, of whichever secret; False where one is unknown."""
        return bool(self.hash) and self.hash == other.hash


class Access(Struct, frozen=True):
    """How an image was pulled under one name. `every_pod`: anonymously or with credentials of the
    node; then there are no secrets and no service accounts."""

    every_pod: bool = False
    secrets: tuple[SecretUse, ...] = ()
    accounts: tuple[ServiceAccountSource, ...] = ()


class PulledRecord(Struct, frozen=True):
    """An image that the kubelet pulled. `access`: by name without tag and digest; under a name that
    is missing there the use must be verified."""

    image_ref: str
    updated_ns: int = 0
    access: Mapping[str, Access] = field(default_factory=lambda: MappingProxyType({}))


class PullVerdict(Struct, frozen=True):
    """Whether a pull must be tried although the image is present. `learned`: a secret of the pod
    that equals a recorded one and should be recorded, too."""

    must_pull: bool
    learned: SecretUse | None = None


def needs_credentials(record: PulledRecord | None, image: str) -> bool:
    """Whether the verdict depends on the pod's credentials."""
    access = record.access.get(without_tag(image)) if record else None
    return bool(access and not access.every_pod and (access.secrets or access.accounts))


def verify(
    record: PulledRecord | None,
    image: str,
    secrets: Iterable[SecretUse],
    accounts: Iterable[ServiceAccountSource] = (),
) -> PullVerdict:
    """Whether a pod must pull an image to verify that it may use it. It need not if every pod may
    use the image, if its service account is a recorded one, or if one of its secrets equals a
    recorded one by content or by name."""
    access = record.access.get(without_tag(image)) if record else None
    if access is None:
        return PullVerdict(must_pull=True)
    if access.every_pod or any(account in access.accounts for account in accounts):
        return PullVerdict(must_pull=False)
    room = len(access.secrets) < SECRETS_KEPT
    for use in secrets:
        for known_use in access.secrets:
            same, equal = use.same_secret(known_use), use.same_credential(known_use)
            if equal:
                return PullVerdict(False, use if room and not same else None)
            if same and room:
                return PullVerdict(False, use)
    return PullVerdict(must_pull=True)


def merged(
    record: PulledRecord | None, image_ref: str, image: str, access: Access | None, now_ns: int
) -> PulledRecord:
    """The record after a pull under the name `image`; the same object if nothing changes. `access`
    None: the credentials are unknown."""
    if record is None:
        named = {without_tag(image): access} if access is not None else {}
        return PulledRecord(image_ref, now_ns, MappingProxyType(named))
    if access is None or not (access.every_pod or access.secrets or access.accounts):
        return record
    name = without_tag(image)
    before = record.access.get(name)
    after = access if before is None else _joined(before, access)
    if after == before:
        return record
    return replace(
        record, updated_ns=now_ns, access=MappingProxyType({**record.access, name: after})
    )


def _joined(before: Access, new: Access) -> Access:
    """Both accesses as one: every secret once, with its newest hash, and every account once; every
    pod if one says so."""
    if before.every_pod or new.every_pod:
        return Access(every_pod=True)
    secrets = {(s.namespace, s.name, s.uid): s for s in (*before.secrets, *new.secrets)}
    accounts = {(a.namespace, a.name, a.uid): a for a in (*before.accounts, *new.accounts)}
    return Access(
        secrets=tuple(secrets[key] for key in sorted(secrets)),
        accounts=tuple(accounts[key] for key in sorted(accounts)),
    )


def access_with(used: Credential | None) -> Access:
    """The access after a successful pull with these credentials; None: it was anonymous."""
    if used is not None and isinstance(used.source, ServiceAccountSource):
        return Access(accounts=(used.source,))
    secret = secret_use(used) if used is not None else None
    return Access(secrets=(secret,)) if secret is not None else Access(every_pod=True)


def secret_use(credential: Credential) -> SecretUse | None:
    """The secret of a credential; None for one of the node or of a service account."""
    source = credential.source
    if not isinstance(source, SecretSource):
        return None
    return SecretUse(source.namespace, source.name, source.uid, credential.hash)


def accounts_of(credentials: Iterable[Credential]) -> list[ServiceAccountSource]:
    """The service accounts for which plug-ins gave credentials."""
    return [c.source for c in credentials if isinstance(c.source, ServiceAccountSource)]
