"""The configuration as /configz shows it (SRV-010)."""

from __future__ import annotations

import json

from refkubelet.config.encode import as_v1beta1
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
