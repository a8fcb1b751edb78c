"""More configurations that a kubelet does not start with: times of shutdowns, reservations,
policies of images, IDs of users, and what was removed (CFG-005)."""

import re
from typing import Any

from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

STATUS, RESTART = Feature.STATUS, Feature.RESTART
NEEDS = [RESTART]
Fields = dict[str, Any]

REMOVED: Fields = {
    "runOnce": True,
    "registerWithTaints": [
        {"key": "a", "effect": "NoSchedule", "timeAdded": "2024-01-01T00:00:00Z"}
    ],
}
"""What configurations once could say."""


async def refused_words(node: Node, *words: str, **config: Any) -> str:
    """Expect that the kubelet does not start with these fields and says all these words; give what
    it says. A kubelet runs again afterwards. Braces are left out: Go shows some durations in
    them."""
    error_text = re.sub("[{}]", "", await node.kubelet.refused_start(**config))
    missing = [text for text in words if text not in error_text]
    expect_equal(node, missing, [], "words that it does not say")
    await node.kubelet.start()
    return error_text


@conformance(id="config-removed-words", rules=["CFG-005"], needs=NEEDS)
async def what_was_removed_is_refused(node: Node) -> None:
    """A kubelet does not start with a mode that was removed or a taint with a time; it names
    both."""
    await refused_words(node, "runOnce (--run", "taint.TimeAdded is not nil", **REMOVED)


@conformance(id="config-shutdown-refused", rules=["CFG-005"], needs=NEEDS)
async def grace_periods_of_a_shutdown_fit(node: Node) -> None:
    """A kubelet does not start with a grace period of a shutdown that is shorter than a second or
    than its part for critical pods, with both kinds of periods, or with one whose gate is off."""
    too_short = "must be either zero or otherwise >= 1 sec"
    total, critical = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods"
    by_priority = [{"priority": 0, "shutdownGracePeriodSeconds": 10}]
    refused: tuple[tuple[Fields, list[str]], ...] = (
        ({total: "500ms", critical: "600ms"},
         [f"{total} 500ms {too_short}", f"{critical} 600ms {too_short}",
          f"{critical} 600ms must be <= {total} 500ms"]),
        ({total: "-1s", critical: "-2s"},
         [f"{total} -1s {too_short}", f"{critical} -2s {too_short}"]),
        ({total: "10s", critical: "5s", "shutdownGracePeriodByPodPriority": by_priority},
         [f"Cannot specify both shutdownGracePeriodByPodPriority and {total}"]),
        ({"shutdownGracePeriodByPodPriority": by_priority,
          "featureGates": {"GracefulNodeShutdownBasedOnPodPriority": False}},
         ["requires feature gate GracefulNodeShutdownBasedOnPodPriority"]),
    )  # fmt: skip
    for fields, words in refused:
        await refused_words(node, *words, **fields)


@conformance(id="config-negative-reservation", rules=["CFG-005"], needs=NEEDS)
async def negative_reservations_are_refused(node: Node) -> None:
    """A kubelet does not start with a reservation below zero or of a resource that none can
    reserve."""
    for wire in ("systemReserved", "kubeReserved"):
        await refused_words(node, "cannot be negative", **{wire: {"cpu": "-1"}})
        await refused_words(node, "cannot reserve", **{wire: {"widgets": "1"}})


@conformance(id="config-verification-refused", rules=["CFG-005", "BACK-210"], needs=NEEDS,
             since="1.35")  # fmt: skip
async def wrong_policies_of_pulled_images_are_refused(node: Node) -> None:
    """A kubelet does not start with an unknown policy for images that are present, with a list of
    images that its policy does not read, with a list that is none, or with one whose gate is
    off."""
    policy, allowed = (
        "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"
    )  # fmt: skip
    await refused_words(node, f'option "Perhaps" specified for {policy}', **{policy: "Perhaps"})
    await refused_words(node, "can't set", **{allowed: ["reg.io/a"]})
    listed = {policy: "NeverVerifyAllowlistedImages", allowed: ["reg.io/a:1", "reg.io/*"]}
    await refused_words(node, "invalid image pattern in", "reg.io/a:1", **listed)
    gates = {"KubeletEnsureSecretPulledImages": False}
    must_not = "must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"
    await refused_words(node, must_not, featureGates=gates, **{policy: "NeverVerify"})


@conformance(id="config-user-ids-refused", rules=["CFG-005"], needs=NEEDS, since="1.33")
async def wrong_ids_per_pod_are_refused(node: Node) -> None:
    """A kubelet does not start with numbers of IDs of a pod that are too small, no multiple of
    65536, or more than there are."""
    for ids, words in (
        (1, "userNamespaces.idsPerPod must not be less than 65536"),
        (65537, "userNamespaces.idsPerPod must be a multiple of 65536"),
        (1 << 32, "userNamespaces.idsPerPod must"),
    ):
        await refused_words(node, words, userNamespaces={"idsPerPod": ids})
