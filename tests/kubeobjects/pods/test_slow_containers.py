"""Containers made to keep a checker busy: it takes time as they are long, whatever is in them."""

from __future__ import annotations

from resource import RUSAGE_SELF, getrusage
from typing import Any, Final

import pytest

from kubeobjects.pods.defaults import default_pod
from kubeobjects.pods.validation import pod_causes

MANY: Final = 20_000
LONG: Final = 300_000


def with_container(**fields: Any) -> dict[str, Any]:
    spec = {**fields.pop("spec", {}), "containers": [{"name": "c", "image": "i", **fields}]}
    return {"metadata": {"name": "a", "namespace": "b"}, "spec": spec}


def of_names(value: Any) -> dict[str, Any]:
    return {f"n{i}": value for i in range(MANY)}


CLAIMS: Final = [{"name": f"c{i}"} for i in range(MANY)]
USES: Final = [{"name": "c", "request": f"r{i}"} for i in range(MANY)]
DEVICES: Final = [{"name": f"v{i}", "devicePath": f"/{i}"} for i in range(MANY)]
MOUNTS: Final = [{"name": f"v{i}", "mountPath": f"/{i}"} for i in range(MANY)]
PORTS: Final = [{"name": f"p{i}", "containerPort": 1, "hostPort": i + 1} for i in range(MANY)]
ADDED: Final = {"add": ["CAP_SYS_ADMIN"] * MANY}
FILE: Final = {"valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}


@pytest.mark.parametrize(
    "slow",
    [
        pytest.param(with_container(image="a.b-" * LONG), id="image"),
        pytest.param(with_container(name="a-" * LONG), id="name"),
        pytest.param(with_container(ports=PORTS), id="ports"),
        pytest.param(with_container(ports=[{"name": "-" * LONG}]), id="name of a port"),
        pytest.param(
            with_container(env=[{"name": f"A{i}", **FILE} for i in range(MANY)]), id="env"
        ),
        pytest.param(
            with_container(
                env=[
                    {
                        "name": "a",
                        "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['" * LONG}},
                    }
                ]
            ),
            id="field",
        ),
        pytest.param(
            with_container(resources={"claims": CLAIMS + CLAIMS}, spec={"resourceClaims": CLAIMS}),
            id="claims",
        ),
        pytest.param(
            with_container(
                resources={"claims": [{"name": f"x{i}"} for i in range(MANY)]},
                spec={"resourceClaims": CLAIMS},
            ),
            id="claims that are not there",
        ),
        pytest.param(
            with_container(resources={"claims": [*USES, {"name": "c"}] * 2}), id="requests"
        ),
        pytest.param(with_container(resources={"limits": of_names("-1")}), id="limits"),
        pytest.param(
            with_container(resources={"limits": {f"hugepages-{i}": "1" for i in range(MANY)}}),
            id="pages",
        ),
        pytest.param(with_container(volumeMounts=MOUNTS, volumeDevices=DEVICES), id="mounts"),
        pytest.param(
            with_container(volumeMounts=[{"name": "v", "mountPath": "/", "subPath": "../" * LONG}]),
            id="path in a volume NODE-204",
        ),
        pytest.param(
            with_container(
                securityContext={"allowPrivilegeEscalation": False, "capabilities": ADDED}
            ),
            id="capabilities",
        ),
        pytest.param(
            with_container(
                securityContext={"windowsOptions": {"runAsUserName": "a." * LONG + "\\"}}
            ),
            id="user of Windows",
        ),
        pytest.param(with_container(lifecycle={"stopSignal": "S" * LONG}), id="signal"),
        pytest.param(
            with_container(resizePolicy=[{"resourceName": f"r{i}"} for i in range(MANY)]),
            id="resize",
        ),
        pytest.param(
            with_container(
                livenessProbe={"httpGet": {"port": 1, "httpHeaders": [{"name": "a b"}] * MANY}}
            ),
            id="headers",
        ),
        pytest.param(
            {
                "metadata": {"name": "a", "namespace": "b"},
                "spec": {
                    "resources": {"limits": {"cpu": "1"}},
                    "containers": [{"name": f"c{i}", "image": "i"} for i in range(MANY)],
                    "initContainers": [
                        {"name": f"i{i}", "image": "i", "restartPolicy": "Always"}
                        for i in range(MANY)
                    ],
                },
            },
            id="containers",
        ),
    ],
)
def test_a_container_takes_time_as_it_is_long_SRC_037(slow: dict[str, Any]) -> None:
    began_s = getrusage(RUSAGE_SELF).ru_utime
    default_pod(slow)
    pod_causes(slow, static=True)
    assert getrusage(RUSAGE_SELF).ru_utime - began_s < 3
