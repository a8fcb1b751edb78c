"""Checks a pod's metadata, and the fields of its spec for the pod as a whole. Pure.

Upstream: pkg/apis/core/validation: ValidatePodSpec, ValidateObjectMeta.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from refkubelet.model.objects import ObjectMeta, PodSpec
from refkubelet.model.validation.field_errors import (
    MAX_INT32,
    MAX_SUBDOMAIN,
    address,
    at_least,
    between,
    duplicate,
    forbidden,
    invalid,
    label,
    label_value,
    labels,
    one_of,
    qualified_name,
    required,
    subdomain,
    too_long,
)
from refkubelet.model.validation.resources import overhead_problems

ANNOTATION_BYTES: Final = 256 * 1024
MAX_NAMESERVERS: Final = 3
MAX_SEARCHES: Final = 32
MAX_SEARCH_CHARACTERS: Final = 2048
MAX_HOSTNAME: Final = 64
EMPTY: Final = "must not be empty"
_SYSCTL: Final = re.compile(
    r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?\Z"
)
_SEARCH: Final = re.compile(
    r"[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*\Z"
)
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POLICIES: Final = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "seLinuxChangePolicy": ("Recursive",),  # the other one is behind a gate
    "supplementalGroupsPolicy": ("Merge", "Strict"),
}
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")


def metadata_problems(meta: ObjectMeta) -> Iterator[str]:
    """Check the metadata, except for name and namespace."""
    yield from labels("metadata.labels", meta.labels)
    yield from subdomain("metadata.generateName", (meta.generateName or "").removesuffix("-"))
    size = 0
    for key, value in (meta.annotations or {}).items():
        yield from qualified_name("metadata.annotations", key.lower())
        size += len(key.encode(errors="replace")) + len((value or "").encode(errors="replace"))
    if size > ANNOTATION_BYTES:
        yield too_long("metadata.annotations", ANNOTATION_BYTES)
    yield from at_least("metadata.generation", meta.generation, 0)
    for i, name in enumerate(meta.finalizers or ()):
        field = f"metadata.finalizers[{i}]"
        yield from qualified_name("metadata.finalizers", name)
        if "/" not in name and name not in ("orphan", "foregroundDeletion", "kubernetes"):
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(field, name, why)
    for owner in meta.ownerReferences or ():
        for name in ("apiVersion", "kind", "name", "uid"):
            if not getattr(owner, name):
                yield invalid(f"metadata.ownerReferences.{name}", "", "must not be empty")


def pod_level_problems(spec: PodSpec) -> Iterator[str]:
    """Check the spec, except for containers, volumes, resources and the fields that `pod`
    checks."""
    if spec.ephemeralContainers:
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.schedulingGates:
        yield forbidden(
            "spec.nodeName", "cannot be set until all schedulingGates have been cleared"
        )
    yield from label("spec.hostname", spec.hostname)
    yield from label("spec.subdomain", spec.subdomain)
    yield from labels("spec.nodeSelector", spec.nodeSelector)
    yield from subdomain("spec.nodeName", spec.nodeName)
    yield from subdomain("spec.serviceAccountName", spec.serviceAccountName or spec.serviceAccount)
    yield from _hostname_override(spec)
    yield from subdomain("spec.priorityClassName", spec.priorityClassName)
    yield from subdomain("spec.runtimeClassName", spec.runtimeClassName)
    yield from one_of(
        "spec.preemptionPolicy", spec.preemptionPolicy, ("PreemptLowerPriority", "Never")
    )
    if spec.os is not None:
        yield from one_of("spec.os", spec.os.name, ("linux", "windows"))
    for i, gate in enumerate(spec.readinessGates or ()):
        yield from qualified_name(f"spec.readinessGates[{i}].conditionType", gate.conditionType)
    for i, toleration in enumerate(spec.tolerations or ()):
        yield from _toleration(f"spec.tolerations[{i}]", toleration)
    yield from _dns(spec)
    for i, alias in enumerate(spec.hostAliases or ()):
        yield from address(f"spec.hostAliases[{i}].ip", alias.ip or "")
        for j, name in enumerate(alias.hostnames or ()):
            field = f"spec.hostAliases[{i}].hostnames[{j}]"
            yield from subdomain(field, name) if name else [invalid(field, "", EMPTY)]
    yield from overhead_problems("spec.overhead", spec.overhead or {})
    yield from _namespaces(spec)
    if spec.securityContext is not None:
        yield from _security("spec.securityContext", spec.securityContext)
    yield from _placement(spec)


def _hostname_override(spec: PodSpec) -> Iterator[str]:
    name, field = spec.hostnameOverride, "spec.hostnameOverride"
    if name is None:
        return
    if spec.setHostnameAsFQDN:
        yield forbidden(field, "may not be specified when setHostnameAsFQDN is true")
    if spec.hostNetwork:
        yield forbidden(field, "may not be specified when hostNetwork is true")
    if len(name) > MAX_HOSTNAME:
        yield too_long(field, MAX_HOSTNAME)
    yield from subdomain(field, name) if name else [invalid(field, "", EMPTY)]


def _toleration(place: str, t: Any) -> Iterator[str]:
    """One toleration: which fields go together, and their words."""
    if t.key:
        yield from qualified_name(f"{place}.key", t.key)
    elif (t.operator or "Equal") != "Exists":
        why = "operator must be Exists when `key` is empty"
        yield invalid(f"{place}.operator", t.operator or "", why)
    if t.tolerationSeconds is not None and t.effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{place}.effect", t.effect or "", why)
    if (t.operator or "Equal") == "Equal":
        yield from label_value(f"{place}.operator", t.value)
    if t.operator == "Exists" and t.value:
        yield invalid(
            f"{place}.operator", t.value, "value must be empty when `operator` is 'Exists'"
        )
    yield from one_of(f"{place}.operator", t.operator or None, ("Equal", "Exists"))
    yield from one_of(f"{place}.effect", t.effect or None, _EFFECTS)


def _dns(spec: PodSpec) -> Iterator[str]:
    """dnsPolicy None needs a dnsConfig with a server; servers, searches and options are limited."""
    config = spec.dnsConfig
    servers = (config.nameservers if config else None) or []
    if spec.dnsPolicy == "None":
        if config is None:
            why = "must provide `dnsConfig` when `dnsPolicy` is None"
            yield required("spec.dnsConfig", why)
        elif not servers:
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required("spec.dnsConfig.nameservers", why)
    if len(servers) > MAX_NAMESERVERS:
        why = f"must not have more than {MAX_NAMESERVERS} nameservers"
        yield invalid("spec.dnsConfig.nameservers", servers, why)
    for i, server in enumerate(servers):
        yield from address(f"spec.dnsConfig.nameservers[{i}]", server)
    searches = (config.searches if config else None) or []
    if len(searches) > MAX_SEARCHES:
        why = f"must not have more than {MAX_SEARCHES} search paths"
        yield invalid("spec.dnsConfig.searches", searches, why)
    if len(" ".join(searches)) > MAX_SEARCH_CHARACTERS:
        why = f"must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces)"
        yield invalid("spec.dnsConfig.searches", searches, f"{why} in the search list")
    for i, search in enumerate(searches):
        name, field = search.removesuffix("."), f"spec.dnsConfig.searches[{i}]"
        if search != "." and not (len(name) <= MAX_SUBDOMAIN and _SEARCH.match(name)):
            yield invalid(field, search, "must be a domain, of a-z, 0-9, '_', '-' and '.'")
    for i, option in enumerate((config.options if config else None) or ()):
        if not option.name:
            yield required(f"spec.dnsConfig.options[{i}]", EMPTY)


def _namespaces(spec: PodSpec) -> Iterator[str]:
    if spec.shareProcessNamespace and spec.hostPID:
        field = "spec.securityContext.shareProcessNamespace"
        yield invalid(field, True, "ShareProcessNamespace and HostPID cannot both be enabled")
    if spec.hostUsers is False:
        for name, shown in (
            ("hostNetwork", "hostNetwork"),
            ("hostPID", "HostPID"),
            ("hostIPC", "HostIPC"),
        ):
            if getattr(spec, name):
                yield forbidden(f"spec.{shown}", "when `hostUsers` is false")


def _security(place: str, context: Any) -> Iterator[str]:
    """The pod's securityContext."""
    yield from ids(place, context, ("runAsUser", "runAsGroup", "fsGroup"))
    for i, group in enumerate(context.supplementalGroups or ()):
        yield from between(f"{place}.supplementalGroups[{i}]", group, 0, MAX_INT32)
    for name, words in _POLICIES.items():
        yield from one_of(f"{place}.{name}", getattr(context, name), words)
    names: set[str] = set()
    for i, sysctl in enumerate(context.sysctls or ()):
        field = f"{place}.sysctls[{i}].name"
        if not sysctl.name:
            yield required(field)
        elif len(sysctl.name) > 253 or not _SYSCTL.match(sysctl.name):
            yield invalid(field, sysctl.name, "must be the name of a sysctl")
        elif sysctl.name in names:
            yield duplicate(field, sysctl.name)
        names.add(sysctl.name)
    yield from profiles(place, context)


def ids(place: str, context: Any, names: tuple[str, ...]) -> Iterator[str]:
    """User and group ids, of a pod or a container."""
    for name in names:
        yield from between(f"{place}.{name}", getattr(context, name), 0, MAX_INT32)


def profiles(place: str, context: Any) -> Iterator[str]:
    """Seccomp and AppArmor, of a pod or a container."""
    for name, what in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        profile = getattr(context, name)
        if profile is None:
            continue
        yield from one_of(f"{place}.{name}.type", profile.type, _PROFILES)
        field = f"{place}.{name}.localhostProfile"
        if profile.type == "Localhost" and not profile.localhostProfile:
            yield required(field, f"must be set when {what} type is Localhost")
        elif profile.type != "Localhost" and profile.localhostProfile is not None:
            why = f"can only be set when {what} type is Localhost"
            yield invalid(field, profile.localhostProfile, why)


def _placement(spec: PodSpec) -> Iterator[str]:
    """Check the fields for the scheduler: node affinity, topology spread, scheduling group."""
    affinity = spec.affinity.nodeAffinity if spec.affinity else None
    wanted = affinity.requiredDuringSchedulingIgnoredDuringExecution if affinity else None
    if wanted is not None and not wanted.nodeSelectorTerms:
        field = (
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
            "nodeSelectorTerms"
        )
        yield required(field, "must have at least one node selector term")
    for i, spread in enumerate(spec.topologySpreadConstraints or ()):
        place = f"spec.topologySpreadConstraints[{i}]"
        if spread.maxSkew <= 0:
            yield invalid(f"{place}.maxSkew", spread.maxSkew, "must be greater than zero")
        if not spread.topologyKey:
            yield required(f"{place}.topologyKey", "can not be empty")
        words = ("DoNotSchedule", "ScheduleAnyway")
        yield from one_of(f"{place}.whenUnsatisfiable", spread.whenUnsatisfiable, words)
    group = getattr(spec, "schedulingGroup", None)
    if group is not None:
        field, name = "spec.schedulingGroup.podGroupName", group.podGroupName
        if name is None:
            yield f"{field}: Invalid value: null: must specify one of: `podGroupName`"
        else:
            yield from subdomain(field, name) if name else [invalid(field, "", EMPTY)]
