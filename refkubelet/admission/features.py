"""Whether this node has the features that a pod needs (LIFE-228). Pure.

The node declares a feature while the gate of that name is on. Upstream:
pkg/kubelet/lifecycle/handlers.go, features_linux.go; component-helpers/nodedeclaredfeatures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from refkubelet.admission.admit_handler import Check, PodAdmitAttributes, Rejection
from refkubelet.model.gates import (
    NODE_DECLARED_FEATURES,
    RESTART_ALL_CONTAINERS,
    has_restart_all_rule,
)
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uses_host_network
from refkubelet.model.resources import has_pod_level_resources

POD_LEVEL_RESOURCES: Final = "PodLevelResources"
POD_LEVEL_RESIZES: Final = "InPlacePodLevelResourcesVerticalScaling"
INIT_RESIZES: Final = "InPlacePodVerticalScalingInitContainers"
USERS_ON_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"


def _has_own_users_on_host_network(pod: Pod) -> bool:
    return uses_host_network(pod) and pod.spec.hostUsers is False


# The features that pods may need, and which pods need them. Sorted by name, as the message lists
# them.
NEEDS: Final[tuple[tuple[str, Callable[[Pod], bool]], ...]] = (
    (RESTART_ALL_CONTAINERS, has_restart_all_rule),
    (USERS_ON_HOST_NETWORK, _has_own_users_on_host_network),
)


# What this kubelet can do while the gate of that name is on; sorted. User namespaces on the host's
# network are missing: no runtime supports them yet.
HERE: Final = (
    POD_LEVEL_RESIZES,
    INIT_RESIZES,
    RESTART_ALL_CONTAINERS,
)


def declared_features(gates: Mapping[str, bool]) -> tuple[str, ...]:
    """What the Node declares (NODE-035); nothing with the gate NodeDeclaredFeatures off."""
    if not gates.get(NODE_DECLARED_FEATURES, True):
        return ()
    return tuple(name for name in HERE if gates.get(name, True))


def features_supported(gates: Mapping[str, bool]) -> Check:
    """The handler. `gates`: feature gates that the configuration sets; the others are on."""
    level, declares = gates.get(POD_LEVEL_RESOURCES, True), gates.get(NODE_DECLARED_FEATURES, True)
    declared = declared_features(gates)

    def handler(asked: PodAdmitAttributes) -> Rejection | None:
        if not level and has_pod_level_resources(asked.pod):
            text = "PodLevelResources feature gate is disabled"
            return Rejection("PodLevelResourcesNotSupported", text)
        missing = [name for name, needs in NEEDS if needs(asked.pod) and name not in declared]
        if declares and missing:
            text = f"Pod requires node features that are not available: {', '.join(missing)}"
            return Rejection("PodFeatureUnsupported", text)
        return None

    return handler
