"""Pods made to keep a checker busy: it takes time as they are long, whatever is in them."""

from __future__ import annotations

from resource import RUSAGE_SELF, getrusage
from typing import Any, Final

import pytest

from kubeobjects.pods.defaults import default_pod
from kubeobjects.pods.validation import pod_causes

MANY: Final = 20_000
LONG: Final = 300_000
_INITIATOR: Final = "iqn.2000-01.a:b" * (LONG // 15) + ","
_UNENDING: Final = "iqn.2000-01.a" * (LONG // 13) + ":"


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "namespace": "b", **spec.pop("metadata", {})},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def volume(kind: str, **source: Any) -> dict[str, Any]:
    return pod(volumes=[{"name": "v", kind: source}])


def iscsi(name: str) -> dict[str, Any]:
    return volume("iscsi", targetPortal="p", lun=0, iqn=name, initiatorName=name)


def spread(number: int) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": f"k{number}", "whenUnsatisfiable": "DoNotSchedule"}


def owner(number: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "K", "name": "n", "uid": f"{number}", "controller": True}


_KEYS: Final = [f"k{i}" for i in range(MANY)]
_TERM: Final = {
    "topologyKey": "k",
    "matchLabelKeys": _KEYS,
    "mismatchLabelKeys": _KEYS,
    "labelSelector": {
        "matchLabels": dict.fromkeys(_KEYS, "v"),
        "matchExpressions": [{"key": key, "operator": "Exists"} for key in _KEYS],
    },
}
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


@pytest.mark.parametrize(
    "slow",
    [
        pytest.param(iscsi(_INITIATOR), id="initiator SRC-037"),
        pytest.param(iscsi(_UNENDING), id="initiator without target SRC-037"),
        pytest.param(iscsi("iqn." + ":" * LONG), id="initiator of colons SRC-037"),
        pytest.param(volume("quobyte", registry="," * LONG, volume="v"), id="registries"),
        pytest.param(volume("hostPath", path="../" * (LONG // 3)), id="path NODE-204"),
        pytest.param(
            pod(volumes=[{"name": f"v{i}", "ephemeral": {}} for i in range(MANY)]), id="volumes"
        ),
        pytest.param(pod(volumes=[{"name": "v", "emptyDir": {}}] * MANY), id="volumes of one name"),
        pytest.param(
            volume("projected", sources=[{"downwardAPI": {"items": [{"path": "a"}] * MANY}}]),
            id="paths of one name",
        ),
        pytest.param(pod(dnsConfig={"searches": ["_" * LONG, "a." * (LONG // 2)]}), id="searches"),
        pytest.param(pod(dnsConfig={"nameservers": ["1." * 4] * MANY}), id="servers"),
        pytest.param(pod(hostname="a-" * (LONG // 2), subdomain="a." * (LONG // 2)), id="names"),
        pytest.param(pod(nodeSelector={"a" * LONG + "!": "-" * LONG}), id="labels"),
        pytest.param(pod(tolerations=[{}] * MANY), id="tolerations"),
        pytest.param(pod(schedulingGates=[{"name": "a"}] * MANY), id="gates"),
        pytest.param(
            pod(topologySpreadConstraints=[spread(i % 9000) for i in range(MANY)]), id="spread"
        ),
        pytest.param(
            pod(
                affinity={
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}
                }
            ),
            id="keys of labels",
        ),
        pytest.param(pod(securityContext={"sysctls": [{"name": "a" * 254}] * MANY}), id="sysctls"),
        pytest.param(pod(resourceClaims=[{"name": f"c{i}"} for i in range(MANY)]), id="claims"),
        pytest.param(
            pod(metadata={"ownerReferences": [owner(i) for i in range(MANY)]}), id="owners"
        ),
        pytest.param(
            pod(metadata={"annotations": {f"{_APPARMOR}{i}": "x" for i in range(MANY)}}),
            id="annotations",
        ),
        pytest.param(
            pod(
                metadata={"annotations": {"scheduler.alpha.kubernetes.io/tolerations": "[" * LONG}}
            ),
            id="nested annotation",
        ),
    ],
)
def test_a_pod_takes_time_as_it_is_long(slow: dict[str, Any]) -> None:
    began_s = getrusage(RUSAGE_SELF).ru_utime
    default_pod(slow)
    pod_causes(slow, static=True)
    assert getrusage(RUSAGE_SELF).ru_utime - began_s < 3
