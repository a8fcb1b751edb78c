"""Checks when a container restarts: its policy and rules, and after a resize. Pure.

Upstream: validateContainerRestartPolicy, validateResizePolicy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubeobjects.causes import Cause, duplicate, invalid_value, required, too_many
from kubeobjects.pods.common.checks import Object, optional_word, word

_POLICIES: Final = ("Always", "Never", "OnFailure")
_ACTIONS: Final = ("Restart", "RestartAllContainers")
_OPERATORS: Final = ("In", "NotIn")
_RESIZED: Final = ("cpu", "memory")
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
MAX_RULES: Final = 20
MAX_EXIT_CODES: Final = 255


def restart_causes(container: Object, path: str, *, of_init: bool = False) -> Iterator[Cause]:
    """What is wrong with policy and rules. Rules without a policy are refused, and those of an init
    container (`of_init`) are then not checked any further."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    field = f"{path}.restartPolicy"
    if policy is None and rules:
        yield required(field, "must specify restartPolicy when restart rules are used")
        if of_init:
            return
    yield from optional_word(policy, field, _POLICIES)
    if len(rules) > MAX_RULES:
        yield too_many(f"{path}.restartPolicyRules", len(rules), MAX_RULES)
    for i, rule in enumerate(rules):
        rule_path = f"{path}.restartPolicyRules[{i}]"
        yield from optional_word(rule.get("action") or "", f"{rule_path}.action", _ACTIONS)
        codes = rule.get("exitCodes")
        if codes is None:
            yield required(f"{rule_path}.exitCodes", "must be specified")
            continue
        operator = codes.get("operator") or ""
        yield from optional_word(operator, f"{rule_path}.exitCodes.operator", _OPERATORS)
        values = codes.get("values") or ()
        if len(values) > MAX_EXIT_CODES:
            yield too_many(f"{rule_path}.exitCodes.values", len(values), MAX_EXIT_CODES)


def resize_causes(container: Object, path: str, pod_policy: str) -> Iterator[Cause]:
    """What is wrong with `resizePolicy`. As upstream, causes do not name the entry, except for a
    resource that is there twice."""
    field = f"{path}.resizePolicy"
    resources: set[str] = set()
    for i, entry in enumerate(container.get("resizePolicy") or ()):
        resource, policy = entry.get("resourceName") or "", entry.get("restartPolicy") or ""
        if resource in resources:
            yield duplicate(f"{field}[{i}]", resource)
        resources.add(resource)
        yield from word(resource, field, _RESIZED)
        yield from word(policy, field, _RESIZE_POLICIES)
        if pod_policy == "Never" and policy != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid_value(field, policy, text)


def init_resize_causes(container: Object, path: str) -> Iterator[Cause]:
    """Entries that an init container that is no sidecar may not have."""
    if container.get("restartPolicy") == "Always":
        return
    for i, entry in enumerate(container.get("resizePolicy") or ()):
        if entry.get("restartPolicy") == "RestartContainer":
            field = f"{path}.resizePolicy[{i}].restartPolicy"
            text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield invalid_value(field, "RestartContainer", text)
