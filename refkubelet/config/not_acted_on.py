"""The fields of the configuration that have no effect in refkubelet, each with why. Pure.

One that is set to something else than its default is told at the start, with what is written here.
All other fields act.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

NOT_ACTED_ON: Final[Mapping[str, str]] = {
    "tlsCurvePreferences": "Python sets one curve only",
    "enableContentionProfiling": "there is no profile of locks",
    "enableDebugFlagsHandler": "there is no /debug/flags/v",
    "enableSystemLogQuery": "/logs/ answers no queries",
    "streamingConnectionIdleTimeout": "the runtime ends idle streams",
    "kubeletCgroups": "this process stays in its cgroup",
    "systemCgroups": "the system's processes stay in their cgroups",
    "qosReserved": "no memory is held back for QoS classes",
    "hairpinMode": "the network plug-in decides",
    "kubeAPIQPS": "requests to the API server are not held up",
    "kubeAPIBurst": "requests to the API server are not held up",
    "contentType": "requests to the API server are JSON",
    "makeIPTablesUtilChains": "no iptables chains are made",
    "iptablesMasqueradeBit": "no iptables chains are made",
    "iptablesDropBit": "no iptables chains are made",
    "configMapAndSecretChangeDetectionStrategy": "objects are always watched",
    "showHiddenMetricsForVersion": "there are no hidden metrics",
    "volumePluginDir": "there are no FlexVolume plug-ins",
}


def complaint(fields: Iterable[str]) -> str:
    """One text for all of these fields, by name.

    >>> complaint(["hairpinMode"])
    'hairpinMode (the network plug-in decides)'
    """
    return ", ".join(f"{name} ({NOT_ACTED_ON[name]})" for name in fields)
