"""What the controllers of a cluster do, done here at once: an account and the certificate
authority for each new namespace, verdicts on certificate requests and certificates for those that
are approved.

In a cluster kube-controller-manager does these, some milliseconds after the request.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from fakekubeapi.access.certificates import UNSIGNED_ROOT
from fakekubeapi.access.kubelet_requests import problem_of
from fakekubeapi.access.settings import AccessSettings
from fakekubeapi.access.signing import SIGNERS
from fakekubeapi.resources.certificates import is_approved, is_undecided, request_pem
from fakekubeapi.resources.service_accounts import DEFAULT_ACCOUNT, ROOT_CA
from fakekubeapi.storage.changes import Key, Object
from fakekubeapi.storage.store import Store
from simclock import Clock, Ids, format_rfc3339

_ABOUT_ROOT: Final = {
    "kubernetes.io/description": "The certificate authority of this API server, for its clients."
}
_CERTIFICATES: Final = "certificatesigningrequests.certificates.k8s.io"


class Controllers:
    """They act on one store. `clock` gives the times, `ids` the UIDs."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, access: AccessSettings) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._access = access

    def after_write(self, key: Key) -> None:
        """Do what follows from a change of the object `key`, which may be gone by now."""
        if key.resource == "namespaces":
            self._fill_namespace(key.name)
        elif key.resource == "serviceaccounts" and key.name == DEFAULT_ACCOUNT:
            self._add_account(key.namespace)
        elif key.resource == _CERTIFICATES:
            self._decide(key)
            self._sign(key)

    def _fill_namespace(self, name: str) -> None:
        if self._store.get(Key("namespaces", "", name)) is None:
            return
        self._add_account(name)
        if self._access.service_account_admission:
            self._add_root(name)

    def _add_account(self, namespace: str) -> None:
        """The service account `default`, unless it is there; it comes back when it is deleted."""
        if self._store.get(Key("namespaces", "", namespace)) is not None:
            account = {"kind": "ServiceAccount", "apiVersion": "v1"}
            self._add(Key("serviceaccounts", namespace, DEFAULT_ACCOUNT), account)

    def _add_root(self, namespace: str) -> None:
        authority = self._access.authority
        pem = UNSIGNED_ROOT if authority is None else authority.root_pem
        root = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"annotations": dict(_ABOUT_ROOT)},
            "data": {"ca.crt": pem},
        }
        self._add(Key("configmaps", namespace, ROOT_CA), root)

    def _add(self, key: Key, obj: Object) -> None:
        if self._store.get(key) is None:
            metadata = {
                **obj.get("metadata", {}),
                "name": key.name,
                "namespace": key.namespace,
                "uid": self._ids.uuid(),
                "creationTimestamp": format_rfc3339(self._clock.wall_ns()),
            }
            self._store.put(key, {**obj, "metadata": metadata})

    def _decide(self, key: Key) -> None:
        """Approve or deny a new certificate request, if the test has said so for its signer."""
        request = self._store.get(key)
        if request is None or not is_undecided(request):
            return
        verdict = self._access.signing.verdict(request["spec"]["signerName"])
        if verdict is not None:
            rows = [self._condition(verdict.type, verdict.reason, verdict.message)]
            status = {**request.get("status", {}), "conditions": rows}
            self._store.put(key, {**request, "status": status})

    def _sign(self, key: Key) -> None:
        """Give an approved request its certificate; if that fails, the condition Failed with the
        reason."""
        request, authority = self._store.get(key), self._access.authority
        if request is None or authority is None or not is_approved(request):
            return
        spec, status = request["spec"], dict(request["status"])
        if spec["signerName"] not in SIGNERS:
            return
        try:
            lasts_s = spec.get("expirationSeconds") or self._access.signing.lasts_s
            usages = spec["usages"]
            if problem := problem_of(spec["signerName"], usages, request_pem(request)):
                raise ValueError(problem)
            pem = authority.sign(request_pem(request), usages, self._clock.now(), lasts_s)
            status["certificate"] = base64.b64encode(pem.encode()).decode()
        except ValueError as error:
            status["conditions"] = [
                *status["conditions"],
                self._condition("Failed", "SignerValidationFailure", str(error)),
            ]
        self._store.put(key, {**request, "status": status})

    def _condition(self, kind: str, reason: str, message: str) -> dict[str, Any]:
        now = format_rfc3339(self._clock.wall_ns())
        return {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }
