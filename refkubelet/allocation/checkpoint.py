"""Encodes and decodes a checkpoint file, `{"data": "<JSON>", "checksum": n}`. Pure.

The form is that of the real kubelet, so that each can read the other's files (CG-060). The checksum
is FNV-1a, 32 bits, over the data as Go's dump of a string prints it.
Upstream: pkg/kubelet/allocation/state/checkpoint.go, pkg/kubelet/checkpointmanager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from lightkube.models.core_v1 import ResourceRequirements

from kubeobjects.golang.fnv import fnv1a_32
from kubeobjects.golang.json import go_json
from refkubelet.allocation.messages import resources_json
from refkubelet.allocation.resources import PodResources, canonical_resources
from refkubelet.checkpoints.content import CheckpointError, checksum, json_value

GO_TYPE: Final = "string"  # of the data, whose checksum covers its Go dump


def encode(entries: Mapping[str, PodResources]) -> str:
    """The text of a file with the resources of these pods, by UID."""
    return whole(data_of({uid: pod_text(uid, pod, texts_of(pod)) for uid, pod in entries.items()}))


def whole(data: str, hash_of: Callable[[bytes], int] = fnv1a_32) -> str:
    """The text of a file with `data` and its checksum (`hash_of`: as in `checksum`)."""
    return go_json({"data": data, "checksum": checksum(GO_TYPE, data, hash_of)})


def data_of(texts: Mapping[str, str]) -> str:
    """The data, which the checksum covers, from the `pod_text` of each pod by UID."""
    if not texts:
        return "{}"
    return '{"entries":{' + ",".join(map(texts.__getitem__, sorted(texts))) + "}}"


def texts_of(pod: PodResources) -> dict[str, str]:
    """The `container_text` of each container of the pod, by name."""
    return {name: container_text(name, resources) for name, resources in pod.containers.items()}


def container_text(name: str, resources: ResourceRequirements) -> str:
    """The resources of one container as JSON, with its name."""
    return f"{go_json(name)}:{go_json(resources_json(resources))}"


def pod_text(pod_uid: str, pod: PodResources, texts: Mapping[str, str]) -> str:
    """The resources of one pod as JSON, with its UID, from the `container_text` of each of its
    containers: a pod may have thousands, and each that starts changes its own only."""
    own = resources_json(pod.pod_level) if pod.pod_level is not None else None
    containers = ",".join(map(texts.__getitem__, sorted(texts)))
    resources = f'{{"ContainerResources":{{{containers}}},"PodLevelResources":{go_json(own)}}}'
    return f"{go_json(pod_uid)}:{resources}"


def decode(text: str) -> dict[str, PodResources]:
    """The resources in a file, by pod UID. Raises `CheckpointError` for a damaged text."""
    try:
        whole = json_value(text)
    except CheckpointError as error:
        raise CheckpointError(f"wanted JSON, but: {error}") from None
    if not isinstance(whole, dict) or not isinstance(whole.get("data"), str):
        raise CheckpointError('wanted an object with a text named "data"')
    data, noted = whole["data"], whole.get("checksum")
    try:
        actual = checksum(GO_TYPE, data)
    except UnicodeEncodeError:
        raise CheckpointError("its data has halves of characters (surrogates)") from None
    if noted != actual:
        raise CheckpointError(f"its checksum is {noted}, that of its data is {actual}")
    try:
        entries = msgspec.json.decode(data, type=_Data).entries
        return {uid: _pod(entry) for uid, entry in (entries or {}).items()}
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"its data is invalid: {error}") from None


def _pod(entry: _Entry) -> PodResources:
    """The resources of one entry, with canonical amounts. Raises ValueError for an invalid amount;
    later nothing checks amounts again."""
    containers, own = entry.ContainerResources or {}, entry.PodLevelResources
    for resources in (*containers.values(), *([own] if own is not None else ())):
        for amounts in (resources.limits, resources.requests):
            for name, amount in (amounts or {}).items():
                if not isinstance(amount, str):
                    raise ValueError(f"{name}: wanted an amount, got {amount!r}")
    return PodResources(
        {name: canonical_resources(resources) for name, resources in containers.items()},
        canonical_resources(own) if own is not None else None,
    )


class _Entry(msgspec.Struct):
    ContainerResources: dict[str, ResourceRequirements] | None = None
    PodLevelResources: ResourceRequirements | None = None


class _Data(msgspec.Struct):
    entries: dict[str, _Entry] | None = None
