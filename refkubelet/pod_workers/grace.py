"""How long a pod may take to stop (LIFE-033). Pure.

Upstream: pkg/kubelet/pod_workers.go: calculateEffectiveGracePeriod.
"""

from __future__ import annotations

MINIMUM_GRACE_S = 1


def effective_grace_period(
    stored_s: int, deletion_s: int | None, override_s: int | None, spec_s: int | None
) -> int:
    """The grace period of a terminating pod, in whole seconds; it only ever decreases.

    `stored_s` is what was decided before (0: nothing yet), `deletion_s` the object's
    deletionGracePeriodSeconds, `override_s` the wish of whoever kills, `spec_s` the pod's own.

    >>> effective_grace_period(0, 5, None, 30)
    5
    >>> effective_grace_period(5, 10, None, 30)
    5
    >>> effective_grace_period(0, 0, None, 30)
    1
    """
    grace_s, asked = stored_s, False
    for wish_s in (deletion_s, override_s):
        if wish_s is not None and (grace_s == 0 or wish_s < grace_s):
            grace_s, asked = wish_s, True
    if grace_s == 0 and not asked and spec_s is not None:
        grace_s = spec_s
    if stored_s:  # a wish of 0 followed by a longer one must not lengthen what was decided
        grace_s = min(grace_s, stored_s)
    return max(grace_s, MINIMUM_GRACE_S)
