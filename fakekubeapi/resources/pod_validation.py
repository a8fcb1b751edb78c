"""What is wrong with a pod, in the order in which a kube-apiserver says it. Pure.

The parts are in `volume_validation`, `container_validation` and the modules that it uses. A
kube-apiserver checks more: it may refuse a pod that passes here, but a pod that is refused here is
refused there, too.
"""

from __future__ import annotations

from typing import Any, Final

from fakekubeapi.resources.checks import IP_RULE, is_address, one_of
from fakekubeapi.resources.container_validation import container_group_causes, image_causes
from fakekubeapi.resources.security_validation import pod_security_causes
from fakekubeapi.resources.volume_validation import token_causes, volume_causes
from kubeobjects.causes import Cause, forbidden_field, invalid_value, required, unsupported_value
from kubeobjects.names import (
    explained,
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)

Object = dict[str, Any]
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MIRROR: Final = "kubernetes.io/config.mirror"
_DEADLINE_RULE: Final = "must be between 1 and 2147483647, inclusive"
_WITH_UNDERSCORE: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_RULE: Final = explained(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
    "or '.', and must start and end with an alphanumeric character",
    rf"{_WITH_UNDERSCORE}(\.{_WITH_UNDERSCORE})*",
    "example.com",
)


def validate_pod(pod: Object, *, new: bool = False) -> list[Cause]:
    """The wrong fields of a pod that has its defaults; empty if it is valid. `new`: it is to be
    created."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return [required("spec")]
    causes = annotation_causes(pod, spec)
    volumes, found = volume_causes(spec.get("volumes") or [])
    causes += found
    seen: set[str] = set()
    if not spec.get("containers"):
        causes.append(required("spec.containers"))
    for group in ("containers", "initContainers", "ephemeralContainers"):
        causes += container_group_causes(spec, group, seen, volumes)
    causes += one_of(spec, "restartPolicy", "spec", _RESTART_POLICIES)
    causes += one_of(spec, "dnsPolicy", "spec", _DNS_POLICIES)
    causes += _selector_causes(spec.get("nodeSelector") or {})
    causes += pod_security_causes(spec)
    causes += _dns_causes(spec)
    causes += _gate_causes(spec.get("readinessGates") or [])
    for field in ("serviceAccountName", "nodeName"):
        name = spec.get(field)
        problems = subdomain_problems(name) if name else []
        causes += [invalid_value(f"spec.{field}", name, text) for text in problems]
    causes += _deadline_causes(spec)
    for field in ("hostname", "subdomain"):
        name = spec.get(field)
        problems = label_problems(name) if name else []
        causes += [invalid_value(f"spec.{field}", name, text) for text in problems]
    causes += toleration_causes(spec.get("tolerations") or [])
    causes += _alias_causes(spec.get("hostAliases") or [])
    system = (spec.get("os") or {}).get("name", "linux")
    if system not in ("linux", "windows"):
        causes.append(unsupported_value("spec.os", system, ("linux", "windows")))
    causes += token_causes(spec)
    if new and spec.get("ephemeralContainers"):
        causes.append(forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
    return causes


def annotation_causes(pod: Object, spec: Object) -> list[Cause]:
    """What is wrong with the mirror annotation. An update tells it twice: of the pod, and of what
    has become of the annotations."""
    mirror = (pod["metadata"].get("annotations") or {}).get(_MIRROR)
    if mirror is None or spec.get("nodeName"):
        return []
    text = "must set spec.nodeName if mirror pod annotation is set"
    return [invalid_value(f"metadata.annotations[{_MIRROR}]", mirror, text)]


def _selector_causes(selector: Object) -> list[Cause]:
    return [
        invalid_value("spec.nodeSelector", shown, text)
        for key, value in selector.items()
        for shown, problems in (
            (key, qualified_name_problems(key)),
            (value, label_value_problems(value)),
        )
        for text in problems
    ]


def _dns_causes(spec: Object) -> list[Cause]:
    config, path = spec.get("dnsConfig"), "spec.dnsConfig"
    none = spec.get("dnsPolicy") == "None"
    if config is None:
        text = "must provide `dnsConfig` when `dnsPolicy` is None"
        return [required(path, text)] if none else []
    servers = config.get("nameservers") or []
    causes: list[Cause] = []
    if none and not servers:
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        causes.append(required(f"{path}.nameservers", text))
    causes += [
        invalid_value(f"{path}.nameservers[{i}]", one, IP_RULE)
        for i, one in enumerate(servers)
        if not is_address(one)
    ]
    for i, search in enumerate(config.get("searches") or []):
        plain = search.rstrip(".").replace("_", "a")
        if plain and subdomain_problems(plain):
            causes.append(invalid_value(f"{path}.searches[{i}]", search, _SEARCH_RULE))
    return causes


def _gate_causes(gates: list[Object]) -> list[Cause]:
    return [
        invalid_value(f"spec.readinessGates[{i}].conditionType", gate["conditionType"], text)
        for i, gate in enumerate(gates)
        for text in qualified_name_problems(gate["conditionType"])
    ]


def _deadline_causes(spec: Object) -> list[Cause]:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is None or 0 < deadline < 1 << 31:
        return []
    return [invalid_value("spec.activeDeadlineSeconds", deadline, _DEADLINE_RULE)]


def updatable_causes(spec: Object) -> list[Cause]:
    """What is wrong with images and deadline, which an update may change: they are looked at once
    more."""
    causes: list[Cause] = []
    for group in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(group) or []):
            causes += image_causes(container, f"spec.{group}[{i}]")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 0 <= deadline < 1 << 31:
        text = "must be between 0 and 2147483647, inclusive"
        causes.append(invalid_value("spec.activeDeadlineSeconds", deadline, text))
    return causes


def toleration_causes(tolerations: list[Object]) -> list[Cause]:
    """What is wrong with tolerations."""
    causes: list[Cause] = []
    for i, one in enumerate(tolerations):
        path, effect = f"spec.tolerations[{i}]", one.get("effect", "")
        key, operator = one.get("key", ""), one.get("operator", "")
        if key:
            problems = qualified_name_problems(key)
            causes += [invalid_value(f"{path}.key", key, text) for text in problems]
        if not key and operator != "Exists":
            text = (
                "operator must be Exists when `key` is empty, which means "
                '"match all values and all keys"'
            )
            causes.append(invalid_value(f"{path}.operator", operator, text))
        if "tolerationSeconds" in one and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(invalid_value(f"{path}.effect", effect, text))
        if operator == "Exists" and one.get("value"):
            text = "value must be empty when `operator` is 'Exists'"
            causes.append(invalid_value(f"{path}.operator", one["value"], text))
        if operator not in ("", "Exists", "Equal"):
            causes.append(unsupported_value(f"{path}.operator", operator, ("Equal", "Exists")))
        if effect not in ("", *_EFFECTS):
            causes.append(unsupported_value(f"{path}.effect", effect, _EFFECTS))
    return causes


def _alias_causes(aliases: list[Object]) -> list[Cause]:
    causes: list[Cause] = []
    for i, alias in enumerate(aliases):
        path, address = f"spec.hostAliases[{i}]", alias.get("ip", "")
        if not is_address(address):
            causes.append(invalid_value(f"{path}.ip", address, IP_RULE))
        for j, name in enumerate(alias.get("hostnames") or []):
            problems = subdomain_problems(name)
            causes += [invalid_value(f"{path}.hostnames[{j}]", name, text) for text in problems]
    return causes
