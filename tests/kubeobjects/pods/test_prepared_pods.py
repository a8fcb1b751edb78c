"""A new pod is changed as an API server changes it before it checks it; and limits of texts that
are too long for the recorded answers.

`ask.py` writes the answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pod_changes import changed, prepare_new_pod

from kubeobjects.causes import Cause
from kubeobjects.pods.defaults import default_pod
from kubeobjects.pods.validation import pod_causes

DATA: Final = Path(__file__).parents[2] / "data/kubeobjects/pod_prepared.jsonl"
HEAD, *LINES = map(json.loads, DATA.read_text().splitlines())
PLAIN: Final[dict[str, Any]] = HEAD["bases"]["plain"]


def cases() -> Iterator[Any]:
    for number, case in enumerate(LINES, 2):
        pod = changed(PLAIN, case["changes"])
        yield pytest.param(pod, case["spec"], id=f"line {number}")


@pytest.mark.parametrize(("pod", "spec"), [*cases()])
def test_a_new_pod_is_changed_as_an_api_server_does(
    pod: dict[str, Any], spec: dict[str, Any]
) -> None:
    default_pod(pod)
    prepare_new_pod(pod)
    assert pod["metadata"]["generation"] == 1
    assert _without_empty(pod["spec"]) == _without_empty(spec)


def _without_empty(value: Any) -> Any:
    """The value without what Go leaves out."""
    if isinstance(value, list):
        return [_without_empty(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_empty(one) for key, one in value.items()}
    return {key: one for key, one in kept.items() if one not in (None, "", False, [], {})}


def causes(changes: dict[str, Any]) -> list[Cause]:
    pod = changed(PLAIN, changes)
    default_pod(pod)
    return pod_causes(pod, static=True)


def test_annotations_have_256_kib_at_most() -> None:
    most = 256 * 1024 - 1
    assert causes({"/metadata/annotations": {"a": "b" * most}}) == []
    too_long = "metadata.annotations: Too long: may not be more than 262144 bytes"
    assert [one.text for one in causes({"/metadata/annotations": {"a": "é" * most}})] == [too_long]


@pytest.mark.parametrize(
    "text", ["a", '{"a":1}', "[1]", '[{"key":1}]', '[{"tolerationSeconds":"1"}]', "[" * 50_000]
)
def test_tolerations_in_an_annotation_are_tolerations(text: str) -> None:
    annotation = "scheduler.alpha.kubernetes.io/tolerations"
    (cause,) = causes({"/metadata/annotations": {annotation: text}})
    assert cause.text.startswith(f'metadata.annotations: Invalid value: "{annotation}": ')


def test_a_pod_of_an_api_server_has_a_namespace() -> None:
    assert [one.text for one in causes({"/metadata/namespace": None})] == [
        "metadata.namespace: Required value"
    ]


def test_a_credential_for_windows_has_64_kib_at_most() -> None:
    field = "/spec/securityContext/windowsOptions"
    assert causes({field: {"gmsaCredentialSpec": "a" * 65536}}) == []
    (cause,) = causes({field: {"gmsaCredentialSpec": "a" * 65537}})
    assert cause.message.endswith("gmsaCredentialSpec size must be under 64 KiB")


def test_annotations_of_a_certificate_have_256_kib_at_most() -> None:
    def with_annotations(size: int) -> list[Cause]:
        certificate = {
            "signerName": "a.example/b",
            "keyType": "ED25519",
            "keyPath": "key",
            "userAnnotations": {"a.b/c": "d" * (size - 5)},
        }
        volume = {"name": "data", "projected": {"sources": [{"podCertificate": certificate}]}}
        return causes({"/spec/volumes/0": volume})

    assert with_annotations(256 * 1024) == []
    (cause,) = with_annotations(256 * 1024 + 1)
    assert cause.message == "Too long: may not be more than 262144 bytes"


def test_a_whole_list_is_shown_ten_times_at_most() -> None:
    owner = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "1", "controller": True}
    assert len(causes({"/metadata/ownerReferences": [owner] * 11})) == 10
    assert len(causes({"/metadata/ownerReferences": [owner] * 50})) == 10
    volume = {"name": "data", "quobyte": {"registry": "," * 50, "volume": "v"}}
    assert len(causes({"/spec/volumes/0": volume})) == 10
