"""Checks fields of a KubeletConfiguration that hold one of some words (CFG-005). Pure.

Texts are those of the kubelet. Upstream: pkg/kubelet/apis/config/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from refkubelet.config.schema.image_policies import POLICIES
from refkubelet.config.schema.kubelet_config import KubeletConfiguration

_TOPOLOGY: Final = ("none", "best-effort", "restricted", "single-numa-node")
_HAIRPIN: Final = ("none", "hairpin-veth", "promiscuous-bridge")
_RESERVATIONS: Final = ("None", "TieredReservation")


def word_problems(config: KubeletConfiguration) -> Iterator[str]:
    """The violations, without `invalid configuration: `."""
    policy = config.topology_manager_policy
    if policy not in _TOPOLOGY:
        known = " ".join(f'"{word}"' for word in _TOPOLOGY)
        field = "topologyManagerPolicy (--topology-manager-policy)"
        yield f'{field} "{policy}" must be one of: [{known}]'
    if (scope := config.topology_manager_scope) not in ("container", "pod"):
        field = "topologyManagerScope (--topology-manager-scope)"
        yield f'{field} "{scope}" must be one of: "container", or "pod"'
    if (behavior := config.memory_swap.swap_behavior) not in ("", "NoSwap", "LimitedSwap"):
        yield (
            f'memorySwap.swapBehavior "{behavior}" must be one of: "", "LimitedSwap" or "NoSwap"'
        )
    field = "imagePullCredentialsVerificationPolicy"  # BACK-210
    yield from _option(field, config.image_pull_credentials_verification_policy, POLICIES)
    yield from _option("hairpinMode (--hairpin-mode)", config.hairpin_mode, _HAIRPIN)
    yield from _option("memoryReservationPolicy", config.memory_reservation_policy, _RESERVATIONS)


def _option(field: str, value: str, words: Sequence[str]) -> Iterator[str]:
    if value not in words:
        *others, last = (f'"{word}"' for word in words)
        yield (
            f'option "{value}" specified for {field}. Valid options are {", ".join(others)} or '
            f"{last}"
        )
