"""Validates a KubeletConfiguration and reports every violation (CFG-005). Pure.

This module has the checks of several fields together. Texts after `invalid configuration: ` are
upstream's where CFG-005 names them. Upstream: pkg/kubelet/apis/config/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from kubeobjects.golang.duration import format_duration
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.config.validation.allocatable import allocatable_problems
from refkubelet.config.validation.fields import field_problems
from refkubelet.config.validation.observing import logging_problems, tracing_problems
from refkubelet.config.validation.resources import resource_problems

PREFIX: Final = "invalid configuration: "
_CRASH_LOOP_GATE: Final = "KubeletCrashLoopBackOffMax"


def validate(config: KubeletConfiguration) -> list[str]:
    """All violations; empty: the configuration is valid. Eviction thresholds are checked by
    `config.eviction_grammar`."""
    checks = (
        field_problems,
        _back_off,
        _shutdown,
        allocatable_problems,
        resource_problems,
        _addresses,
    )
    found = dict.fromkeys(problem for check in checks for problem in check(config))
    problems = [PREFIX + problem for problem in found]  # each is told once
    if config.sync_frequency_s <= 0:
        problems.append(f"invalid sync frequency {format_duration(config.sync_frequency_s)}")
    problems.extend(logging_problems(config))
    problems.extend(tracing_problems(config))
    problems.extend(
        f"invalid taint: {t.key}: taint.TimeAdded is not nil"
        for t in config.register_with_taints
        if t.time_added
    )
    return problems


def _back_off(config: KubeletConfiguration) -> Iterator[str]:
    """Check maxContainerRestartPeriod: 1 to 300 s, and the default if its gate is off
    (BACK-013)."""
    period_s = config.crash_loop_back_off.max_container_restart_period_s
    if not 1 <= period_s <= 300:
        yield (
            f"CrashLoopBackOff.MaxContainerRestartPeriod (got: {period_s:g} seconds) "
            "must be set between 1s and 300s"
        )
    if period_s != 300 and not config.feature_gates.get(_CRASH_LOOP_GATE, True):
        yield (
            f"FeatureGate {_CRASH_LOOP_GATE} not enabled, "
            "CrashLoopBackOff.MaxContainerRestartPeriod must not be set"
        )


def _shutdown(config: KubeletConfiguration) -> Iterator[str]:
    """Check the grace periods of a shutdown: their order, minimum and gates, and that those by
    priority are not combined with the others."""
    total_s, critical_s = (
        config.shutdown_grace_period_s,
        config.shutdown_grace_period_critical_pods_s,
    )
    if critical_s > total_s:
        yield (
            f"shutdownGracePeriodCriticalPods {format_duration(critical_s)} must be <= "
            f"shutdownGracePeriod {format_duration(total_s)}"
        )
    for name, value in (
        ("shutdownGracePeriod", total_s),
        ("shutdownGracePeriodCriticalPods", critical_s),
    ):
        if value < 0 or 0 < value < 1:
            yield f"{name} {format_duration(value)} must be either zero or otherwise >= 1 sec"
    gates = config.feature_gates
    if (total_s or critical_s) and not gates.get("GracefulNodeShutdown", True):
        yield (
            "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature "
            "gate GracefulNodeShutdown"
        )
    by_priority = "GracefulNodeShutdownBasedOnPodPriority"
    if config.shutdown_grace_period_by_pod_priority and not gates.get(by_priority, True):
        yield f"Specifying shutdownGracePeriodByPodPriority requires feature gate {by_priority}"
    if config.shutdown_grace_period_by_pod_priority and (total_s or critical_s):
        yield (
            "Cannot specify both shutdownGracePeriodByPodPriority and "
            "shutdownGracePeriod at the same time"
        )


def _addresses(config: KubeletConfiguration) -> Iterator[str]:
    for wire, text in (
        ("address", config.address),
        ("healthzBindAddress", config.healthz_bind_address),
    ):
        try:
            ipaddress.ip_address(text)
        except ValueError:
            yield f"{wire} {text!r} is not an IP address"
