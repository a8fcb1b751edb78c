"""Removes the fields of pods whose feature gate is off. Pure.

This is done once for each incoming pod, so that later decisions need not check these gates. Rules:
LIFE-124, LIFE-125 (both gates are on by default)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import containers, is_sidecar

CONTAINER_RESTART_RULES: Final = "ContainerRestartRules"
RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
RESTART_ALL: Final = "RestartAllContainers"
NO_ACTION: Final = ""  # a rule with it matches an exit code and has no effect

replace: Final = msgspec.structs.replace


def gated_fields(gates: Mapping[str, bool]) -> Callable[[Pod], Pod]:
    """The function for every incoming pod; it returns the same object if all gates are on. Pods
    that admission will refuse because of a gate keep their fields (LIFE-228)."""
    rules = gates.get(CONTAINER_RESTART_RULES, True)
    restart_all = gates.get(RESTART_ALL_CONTAINERS, True)
    if rules and restart_all:
        return lambda pod: pod
    stripped = _without_restart_all if rules else _without_rules
    if restart_all or not gates.get(NODE_DECLARED_FEATURES, True):
        return stripped
    return lambda pod: pod if has_restart_all_rule(pod) else stripped(pod)


def has_restart_all_rule(pod: Pod) -> bool:
    """Whether a container has a rule with the action RestartAllContainers (LIFE-125)."""
    rules = (rule for c in containers(pod) for rule in c.restartPolicyRules or ())
    return any(rule.action == RESTART_ALL for rule in rules)


def _without_rules(pod: Pod) -> Pod:
    """The pod without restart rules; only sidecars keep their restart policy."""

    def plain(container: Container) -> Container:
        return replace(container, restartPolicy=None, restartPolicyRules=None)

    return _changed(
        pod, plain, lambda c: replace(c, restartPolicyRules=None) if is_sidecar(c) else plain(c)
    )


def _without_restart_all(pod: Pod) -> Pod:
    """The pod with rules whose action RestartAllContainers is removed; they still match exit
    codes."""

    def disarmed(container: Container) -> Container:
        rules = [
            replace(rule, action=NO_ACTION) if rule.action == RESTART_ALL else rule
            for rule in container.restartPolicyRules or ()
        ]
        return replace(container, restartPolicyRules=rules) if rules else container

    return _changed(pod, disarmed, disarmed)


def _changed(
    pod: Pod, regular: Callable[[Container], Container], init: Callable[[Container], Container]
) -> Pod:
    spec = pod.spec
    inits = [init(c) for c in spec.initContainers] if spec.initContainers else spec.initContainers
    spec = replace(spec, containers=[regular(c) for c in spec.containers], initContainers=inits)
    return replace(pod, spec=spec)
