"""What is changed in a pod as it is written, so that it can be decoded (SRC-004)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from refkubelet.model.pod_schema import fit_to_version


def fitted(**spec: Any) -> dict[str, Any]:
    pod = {"spec": spec}
    fit_to_version(pod)
    return pod["spec"]


@pytest.mark.parametrize("group", ["containers", "initContainers", "ephemeralContainers"])
def test_containers_are_fitted_SRC_004(group: str) -> None:
    def ref(divisor: Any) -> dict[str, Any]:
        return {"resourceFieldRef": {"resource": "limits.cpu", "divisor": divisor}}

    probe = {
        "httpGet": {
            "port": 1,
            "protocol": "x",
            "httpHeaders": [{"name": "a"}, {"name": "b", "value": "c"}],
        },
        "grpc": {"port": 1, "mode": "x"},
    }
    hook = {"sleep": {}, "httpGet": {"protocol": "x", "httpHeaders": [{"value": None}]}}
    names = ("livenessProbe", "readinessProbe", "startupProbe")
    one = {
        "volumeMounts": [{"name": "v", "bindMountOptions": ["x"]}],
        "env": [
            {"valueFrom": ref(1)},
            {"valueFrom": ref("1m")},
            {"valueFrom": ref(1.5)},
            {"value": "a"},
        ],
        **{name: copy.deepcopy(probe) for name in names},
        "lifecycle": {name: copy.deepcopy(hook) for name in ("postStart", "preStop")},
    }
    (found,) = fitted(**{group: [one]})[group]
    assert found == {
        "volumeMounts": [{"name": "v"}],
        "env": [
            {"valueFrom": ref(1)},
            {"valueFrom": ref("1m")},
            {"valueFrom": ref(1.5)},
            {"value": "a"},
        ],
        **{
            name: {
                "httpGet": {
                    "port": 1,
                    "httpHeaders": [{"name": "a", "value": ""}, {"name": "b", "value": "c"}],
                },
                "grpc": {"port": 1},
            }
            for name in names
        },
        "lifecycle": {
            name: {"sleep": {"seconds": 0}, "httpGet": {"httpHeaders": [{"value": ""}]}}
            for name in ("postStart", "preStop")
        },
    }


def test_volumes_are_fitted_SRC_004() -> None:
    def items(**more: Any) -> list[dict[str, Any]]:
        ref = {"resourceFieldRef": {"divisor": 1}}
        return [{"path": "a", **ref, **more}]

    alone = {
        "clusterTrustBundle": "path",
        "podCertificate": "keyPath",
        "serviceAccountToken": "path",
    }
    volumes = [
        {"name": "a", "emptyDir": {"mode": 1, "sizeLimit": 5}},
        {"name": "b", "iscsi": {"iqn": "x"}},
        {"name": "c", "iscsi": {"lun": 3}},
        {"name": "d", "downwardAPI": {"defaultUser": 1, "items": items(user=1)}},
        {"name": "e", "secret": {"defaultUser": 1, "items": [{"key": "k", "user": 1}]}},
        {"name": "f", "projected": {"defaultUser": 1, "sources": [
            {"downwardAPI": {"items": items(user=1)}},
            {"configMap": {"items": [{"key": "k", "user": 1}]}},
            *({name: {path: "p", "user": 1}} for name, path in alone.items()),
        ]}},
    ]  # fmt: skip
    assert fitted(volumes=volumes)["volumes"] == [
        {"name": "a", "emptyDir": {"sizeLimit": 5}},
        {"name": "b", "iscsi": {"iqn": "x", "lun": 0}},
        {"name": "c", "iscsi": {"lun": 3}},
        {"name": "d", "downwardAPI": {"items": items()}},
        {"name": "e", "secret": {"items": [{"key": "k"}]}},
        {"name": "f", "projected": {"sources": [
            {"downwardAPI": {"items": items()}},
            {"configMap": {"items": [{"key": "k"}]}},
            *({name: {path: "p"}} for name, path in alone.items()),
        ]}},
    ]  # fmt: skip


def test_the_spec_is_fitted_SRC_004() -> None:
    sysctls = [{"name": "a"}, {"name": "b", "value": "1"}]
    found = fitted(evictionResponders=[], securityContext={"sysctls": sysctls}, hostname="h")
    assert found == {
        "hostname": "h",
        "securityContext": {"sysctls": [{"name": "a", "value": ""}, {"name": "b", "value": "1"}]},
    }


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": "x", "volumes": {"a": 1}, "securityContext": []},
        {"containers": [1, None], "volumes": ["x"], "securityContext": {"sysctls": [7]}},
        {"containers": [{"env": 1, "lifecycle": [], "livenessProbe": "x", "volumeMounts": [2]}]},
        {"volumes": [{"emptyDir": "x", "iscsi": 5, "projected": {"sources": [1, {"secret": 2}]}}]},
        {"volumes": [{"emptyDir": {"sizeLimit": True}}, {"secret": {"items": [3, None]}}]},
    ],
)
def test_what_has_another_shape_is_left_to_the_decoder_SRC_004(spec: dict[str, Any]) -> None:
    before = copy.deepcopy(spec)
    assert fitted(**spec) == before


def test_what_has_no_spec_stays_as_it_is_SRC_004() -> None:
    for pod in ({}, {"spec": None}, {"spec": []}):
        before = copy.deepcopy(pod)
        fit_to_version(pod)
        assert pod == before
