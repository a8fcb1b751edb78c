"""Certificate signing requests: the request itself never changes, its conditions change through
/approval (Approved, Denied) and /status (Failed and the certificate).

Upstream: pkg/registry/certificates/certificates, pkg/apis/certificates/validation.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from fakekubeapi.bodies import copy_json
from fakekubeapi.resources.common.strategy import Object, Strategy
from kubeobjects.causes import Cause, forbidden_field, invalid_value, required
from kubeobjects.names import path_segment_problems

APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"
_FIXED: Final = (APPROVED, DENIED, FAILED)
"""Conditions that never go; only /approval sets the first two, only /status the third."""
_OF_REQUESTER: Final = ("username", "uid", "groups", "extra")
_BEGIN: Final = "-----BEGIN CERTIFICATE REQUEST-----"


class CertificateRequestStrategy(Strategy):
    """The rules of certificatesigningrequests."""

    def name_rule(self, name: str) -> list[str]:
        return path_segment_problems(name)

    field_labels: ClassVar[tuple[str, ...]] = ("spec.signerName",)

    def prepare_create(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("usages"):
            spec["usages"] = ["digital signature", "key encipherment"]
        obj["status"] = {}

    def set_requester(self, obj: Object, user: dict[str, Any]) -> None:
        for field in _OF_REQUESTER:
            obj["spec"].pop(field, None)
        obj["spec"].update(user)

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        spec = obj["spec"]
        yield from super().validate_create(obj)
        if not _is_request(spec.get("request") or ""):
            rule = "PEM block type must be CERTIFICATE REQUEST"
            yield invalid_value("spec.request", spec.get("request") or "", rule)
        signer = spec.get("signerName") or ""
        if not signer:
            yield required("spec.signerName")
        elif "/" not in signer.strip("/"):
            rule = "should be a fully qualified domain and path of the form 'example.com/name'"
            yield invalid_value("spec.signerName", signer, rule)
        lasts = spec.get("expirationSeconds")
        if lasts is not None and lasts < 600:
            rule = "may not specify a duration less than 600 seconds (10 minutes)"
            yield invalid_value("spec.expirationSeconds", lasts, rule)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        status = new.get("status") or {}
        for key in [key for key in new if key != "metadata"]:
            del new[key]
        new.update({key: copy_json(value) for key, value in old.items() if key != "metadata"})
        if subresource == "approval":
            new["status"] = {**new.get("status", {}), "conditions": status.get("conditions") or []}
        elif subresource == "status":
            new["status"] = status

    def set_times(self, new: Object, old: Object, now: str) -> None:
        before = {(c.get("type"), c.get("status")): c for c in _conditions(old)}
        for condition in _conditions(new):
            same = before.get((condition.get("type"), condition.get("status")), {})
            condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
            condition["lastTransitionTime"] = (
                condition.get("lastTransitionTime") or same.get("lastTransitionTime") or now
            )

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        was, new_types = _types(old), _types(new)
        may_add = {"approval": (APPROVED, DENIED), "status": (FAILED,)}.get(subresource, ())
        for kind in _FIXED:
            if kind in was and kind not in new_types:
                rule = f'updates may not remove a condition of type "{kind}"'
                yield forbidden_field("status.conditions", rule)
            if kind in new_types and kind not in was and kind not in may_add:
                rule = f'updates may not add a condition of type "{kind}"'
                yield forbidden_field("status.conditions", rule)
        if APPROVED in new_types and DENIED in new_types:
            rule = "Approved and Denied conditions are mutually exclusive"
            yield invalid_value("status.conditions", DENIED, rule)
        new_certificate, had = _certificate(new), _certificate(old)
        if had and new_certificate != had:
            rule = "updates may not change a certificate that was issued"
            yield forbidden_field("status.certificate", rule)


def is_approved(obj: Object) -> bool:
    """Whether a certificate is due: the request is approved, neither denied nor failed, and has
    none yet."""
    types = _types(obj)
    return APPROVED in types and not {DENIED, FAILED} & set(types) and not _certificate(obj)


def is_undecided(obj: Object) -> bool:
    """Whether nobody has approved or denied the request yet, and it did not fail."""
    return not _types(obj)


def request_pem(obj: Object) -> bytes:
    """The PEM text of the request."""
    return base64.b64decode(obj["spec"]["request"])


def _conditions(obj: Object) -> list[dict[str, Any]]:
    return (obj.get("status") or {}).get("conditions") or []


def _types(obj: Object) -> list[str]:
    return [str(condition.get("type")) for condition in _conditions(obj)]


def _certificate(obj: Object) -> str:
    return str((obj.get("status") or {}).get("certificate") or "")


def _is_request(encoded: str) -> bool:
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    return text.lstrip().startswith(_BEGIN)


class TrustBundleStrategy(Strategy):
    """A bundle of a signer has a name that begins with the signer's: `example.com:one:name`."""

    def name_rule(self, name: str) -> list[str]:
        return super().name_rule(name.rpartition(":")[2])
