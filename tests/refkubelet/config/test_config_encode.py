"""The configuration as /configz shows it (SRV-010)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from refkubelet.config import KubeletConfiguration
from refkubelet.config.encode import as_v1beta1
from refkubelet.config.kubelet_config import MemoryReservation
from refkubelet.config.load import parse_config

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


def test_headers_with_passwords_are_not_shown() -> None:
    text = HEAD + "staticPodURL: http://a/\nstaticPodURLHeader: {Authorization: [secret]}\n"
    shown = as_v1beta1(parse_config(text.encode(), "/k.yaml"))
    assert shown["staticPodURL"] == "http://a/"
    assert "secret" not in json.dumps(shown)


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
