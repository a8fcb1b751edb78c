"""The rules of namespaces, leases, service accounts and events beyond the common ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from fakekubeapi.resources.common.strategy import Object, Strategy
from kubeobjects.causes import Cause, invalid_texts, invalid_value, required
from kubeobjects.names import label_problems, path_segment_problems, qualified_name_problems
from kubeobjects.pods.common.checks import not_negative


def _spec(obj: Object) -> dict[str, Any]:
    spec: dict[str, Any] = obj.get("spec") or {}
    return spec


class NamespaceStrategy(Strategy):
    """Namespaces are Active from the start. The objects in a deleted one are removed by the server
    (`Deletion`), as there is no namespace controller."""

    admitted: ClassVar[tuple[str, ...]] = ("spec.finalizers",)
    field_labels: ClassVar[tuple[str, ...]] = ("status.phase",)

    def prepare_create(self, obj: Object) -> None:
        if not obj["metadata"].get("generateName"):
            self._label(obj)
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        own = [] if "kubernetes" in finalizers else ["kubernetes"]
        obj["spec"] = {"finalizers": [*finalizers, *own]}
        obj["status"] = {"phase": "Active"}

    def admit(self, obj: Object) -> None:
        """A generated name is in the label, too; nobody owns the label then."""
        self._label(obj)

    def _label(self, obj: Object) -> None:
        name = obj["metadata"].get("name", "")
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name

    def name_rule(self, name: str) -> list[str]:
        return label_problems(name)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        self._label(new)
        new["spec"] = old["spec"]
        status = new["status"] = new.get("status") or {}
        status["phase"] = status.get("phase") or "Active"

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        ends = "deletionTimestamp" in new["metadata"]
        only, when = ("Terminating", "is not empty") if ends else ("Active", "is empty")
        phase = new["status"]["phase"]
        if subresource == "status" and phase != only:
            why = f"may only be '{only}' if `deletionTimestamp` {when}"
            yield invalid_value("status.Phase", phase, why)


class AccountStrategy(Strategy):
    """Service accounts. Of the secrets that they name only the names count."""

    returns_deleted = True

    def prepare_create(self, obj: Object) -> None:
        _keep_names(obj)

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        _keep_names(new)


def _keep_names(account: Object) -> None:
    if account.get("secrets"):
        account["secrets"] = [{"name": ref.get("name", "")} for ref in account["secrets"]]


class LeaseStrategy(Strategy):
    """A PUT creates a lease that does not exist; one that changes a lease has to name the version
    it changes (NODE-041)."""

    looks = 3

    allow_create_on_update = True
    needs_resource_version = True

    def admit(self, obj: Object) -> None:
        _drop_candidates(obj)

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from super().validate_create(obj)
        yield from _lease_causes(_spec(obj))

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        yield from _lease_causes(_spec(new))


def _drop_candidates(lease: Object) -> None:
    """Fields of coordinated leader election, which is off."""
    for field in ("strategy", "preferredHolder"):
        _spec(lease).pop(field, None)


def _lease_causes(spec: dict[str, Any]) -> Iterator[Cause]:
    lasts, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if lasts is not None and lasts <= 0:
        text = "must be greater than 0"
        yield invalid_value("spec.leaseDurationSeconds", lasts, text)
    yield from not_negative(transitions, "spec.leaseTransitions")


class RuntimeClassStrategy(Strategy):
    """A PUT creates a RuntimeClass that does not exist."""

    allow_create_on_update = True


class EventStrategy(Strategy):
    """An event is in the namespace of the object it is about; if that has none, in `default`."""

    looks = 2

    allow_create_on_update = True
    strict_finalizers = False

    def name_rule(self, name: str) -> list[str]:
        return path_segment_problems(name)

    field_labels: ClassVar[tuple[str, ...]] = (
        *("involvedObject.kind", "involvedObject.namespace", "involvedObject.name"),
        *("involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion"),
        *("involvedObject.fieldPath", "reason", "reportingComponent", "type"),
    )

    def validate_update(self, new: Object, old: Object, subresource: str) -> Iterator[Cause]:
        yield from super().validate_update(new, old, subresource)
        yield from self._event_causes(new)

    def validate_create(self, obj: Object) -> Iterator[Cause]:
        yield from super().validate_create(obj)
        yield from self._event_causes(obj)

    def _event_causes(self, obj: Object) -> Iterator[Cause]:
        about = (obj.get("involvedObject") or {}).get("namespace", "")
        place = obj["metadata"].get("namespace", "")
        new = bool(obj.get("eventTime"))
        unplaced = ("default", "kube-system") if new else ("default",)
        if place != about if about and not new else (not about and place not in unplaced):
            text = "does not match event.namespace"
            yield invalid_value("involvedObject.namespace", about, text)
        if new:
            yield from _reporter_causes(obj)


def _reporter_causes(event: Object) -> Iterator[Cause]:
    """What is wrong with an event that says its time: it has to say who reports it, too."""
    reporter = event.get("reportingComponent") or ""
    if not reporter:
        yield required("reportingComponent")
    yield from invalid_texts("reportingComponent", reporter, qualified_name_problems(reporter))
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field) or ""
        if not value:
            yield required(field)
        if len(value) > 128:
            yield invalid_value(field, "", "can have at most 128 characters")
    if len(event.get("message") or "") > 1024:
        yield invalid_value("message", "", "can have at most 1024 characters")
