"""The configuration as /configz shows it (SRV-010)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import inspect

from kubeobjects.strict.reader import bare, not_null, type_of
from kubeobjects.structs import replace
from kubeobjects.yaml.document import read_yaml
from refkubelet.config import KubeletConfiguration
from refkubelet.config.decode import struct_of
from refkubelet.config.encode import as_v1beta1
from refkubelet.config.load import parse_config
from refkubelet.config.schema.kubelet_config import MemoryReservation

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def test_what_is_shown_can_be_read_again() -> None:
    text = HEAD + (
        "maxPods: 7\nsyncFrequency: 90s\ncontainerLogMaxSize: 3Mi\nclusterDNS: [192.0.2.1]\n"
        "registerWithTaints: [{key: a, effect: NoSchedule}]\nfailSwapOn: false\n"
        "evictionHard: {memory.available: 1Mi}\nfeatureGates: {EventedPLEG: true}\n"
        "authentication: {anonymous: {enabled: true}}\nserializeImagePulls: false\n"
        "volumePluginDir: /v\n"
    )
    config = parse_config(text.encode(), "/k.yaml")
    shown = as_v1beta1(config)
    assert (shown["syncFrequency"], shown["containerLogMaxSize"]) == ("1m30s", "3Mi")
    assert shown["authentication"]["x509"] == {}
    assert parse_config(json.dumps(shown).encode(), "/k.yaml") == config


@pytest.mark.parametrize("field", type_of(KubeletConfiguration).fields, ids=lambda f: f.name)
def test_every_field_with_another_value_can_be_read_again_SRV_040(field: inspect.Field) -> None:
    """A configuration made of /configz is the kubelet's own."""
    config = parse_config(HEAD.encode(), "/k.yaml")
    if (value := another(field.type, getattr(config, field.name))) is None:
        return
    config = replace(config, **{field.name: value})
    shown = as_v1beta1(config)
    assert field.encode_name in shown
    again = struct_of(read_yaml(json.dumps(shown).encode()), "/k.yaml", KubeletConfiguration)
    assert getattr(again, field.name) == value


def another(kind: inspect.Type, value: Any) -> Any:
    """Another value of that type; None: parts of it are fields of their own."""
    match bare(not_null(kind)), value:
        case inspect.BoolType(), _:
            return not value
        case _, float():  # a number, or seconds
            return value + 1.0
        case inspect.IntType(), _:
            return (value or 0) + 1
        case inspect.StrType(), int():  # an amount
            return value + 1024
        case inspect.StrType(), _:
            return "/other"
        case inspect.VarTupleType(item_type=inspect.StrType()), _:
            return ("a", "b")
        case inspect.VarTupleType(item_type=inspect.Metadata()), _:
            return (3,)
        case inspect.DictType(value_type=inspect.StrType()), _:
            return {"a": "b"}
        case inspect.DictType(value_type=inspect.BoolType()), _:
            return {"a": True}
        case inspect.DictType(), _:
            return {"Authorization": ("Bearer x", "y")}
    return None


@pytest.mark.parametrize(
    ("given", "path", "wanted"),
    [
        ("", "kind", "KubeletConfiguration"),
        ("", "apiVersion", "kubelet.config.k8s.io/v1beta1"),
        ("", "staticPodPath", None),  # an empty text
        ("", "podsPerCore", None),  # a number without a value
        ("podsPerCore: 3", "podsPerCore", 3),
        ("", "readOnlyPort", None),
        ("", "clusterDNS", None),
        ("clusterDNS: [192.0.2.1]", "clusterDNS", ["192.0.2.1"]),
        ("", "systemReserved", None),
        ("systemReserved: {cpu: '1'}", "systemReserved", {"cpu": "1"}),
        ("", "featureGates", None),
        ("", "memorySwap", {}),  # a part without anything is there
        ("", "protectKernelDefaults", None),
        ("", "seccompDefault", False),  # off, and shown
        ("", "mergeDefaultEvictionSettings", False),
        ("", "enableSystemLogQuery", False),
        ("resolvConf: ''", "resolvConf", ""),
        ("containerRuntimeEndpoint: unix:///r", "imageServiceEndpoint", None),
        (
            "containerRuntimeEndpoint: unix:///r\nimageServiceEndpoint: unix:///i",
            "imageServiceEndpoint",
            "unix:///i",
        ),
        (
            "staticPodURL: http://a/\nstaticPodURLHeader: {Authorization: [b]}",
            "staticPodURLHeader",
            {"Authorization": ["b"]},
        ),
        ("protectKernelDefaults: true", "protectKernelDefaults", True),
        ("failSwapOn: false", "failSwapOn", False),  # on by default
        ("", "authentication.anonymous.enabled", False),
        ("", "registerWithTaints", None),
        (
            "registerWithTaints: [{key: a, effect: NoSchedule}]",
            "registerWithTaints",
            [{"key": "a", "effect": "NoSchedule"}],
        ),
        (
            "registerWithTaints: [{key: a, value: b, effect: NoExecute}]",
            "registerWithTaints",
            [{"key": "a", "value": "b", "effect": "NoExecute"}],
        ),
        ("", "shutdownGracePeriod", "0s"),
        ("", "containerLogMaxSize", "10Mi"),
        ("", "memoryThrottlingFactor", 0.9),
        ("", "eventRecordQPS", 50),
        ("eventRecordQPS: 0", "eventRecordQPS", 0),  # a number whose default is another
    ],
)
def test_what_is_shown_and_what_is_left_out_SRV_010(given: str, path: str, wanted: object) -> None:
    shown: Any = as_v1beta1(parse_config((HEAD + given).encode(), "/k.yaml"))
    for name in path.split("."):
        shown = shown.get(name)
    assert shown == wanted
    assert type(shown) is type(wanted)


def test_each_part_of_a_memory_reservation_is_shown_SRV_010() -> None:
    reserved = replace(
        KubeletConfiguration(),
        reserved_memory=(MemoryReservation(numa_node=1, limits={"memory": "1Gi"}),),
    )
    assert as_v1beta1(reserved)["reservedMemory"] == [{"numaNode": 1, "limits": {"memory": "1Gi"}}]
