"""Volumes of claims: whose claim, and why it cannot be set up (NODE-214)."""

from __future__ import annotations

from typing import Any

import pytest
from lightkube.models.core_v1 import PersistentVolumeClaim, Volume
from pods import make_pod

from refkubelet.volumes.claims import claim_of, claim_problem, foreign, no_driver, no_plugin

POD = make_pod("c", name="web", namespace="ns", uid="u1")
BOUND = {"spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}
DELETED = "2026-01-01T00:00:00Z"


def volume(**source: Any) -> Volume:
    return Volume.from_dict({"name": "v", **source})


def claim(**parts: Any) -> PersistentVolumeClaim:
    return PersistentVolumeClaim.from_dict(parts)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ({"persistentVolumeClaim": {"claimName": "data"}}, "data"),
        ({"ephemeral": {}}, "web-v"),
        ({"emptyDir": {}}, None),
    ],
)
def test_the_name_of_the_claim_NODE_214(source: dict[str, Any], wanted: str | None) -> None:
    assert claim_of(POD, volume(**source)) == wanted


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        (BOUND, None),
        ({**BOUND, "metadata": {"name": "c"}}, None),
        ({**BOUND, "metadata": {"deletionTimestamp": DELETED}}, "PVC is being deleted"),
        (
            {**BOUND, "metadata": {"deletionTimestamp": DELETED, "finalizers": ["other"]}},
            "PVC is being deleted",
        ),
        (
            # protected because a pod uses it: this one may as well
            {
                **BOUND,
                "metadata": {
                    "deletionTimestamp": DELETED,
                    "finalizers": ["other", "kubernetes.io/pvc-protection"],
                },
            },
            None,
        ),
        ({"spec": {"volumeName": "pv"}}, "PVC is not bound"),
        ({"spec": {"volumeName": "pv"}, "status": {"phase": "Pending"}}, "PVC is not bound"),
        ({"status": {"phase": "Bound"}}, "PVC has empty pvc.Spec.VolumeName"),
        ({"spec": {}, "status": {"phase": "Bound"}}, "PVC has empty pvc.Spec.VolumeName"),
    ],
)
def test_why_a_claim_names_no_volume_NODE_214(parts: dict[str, Any], wanted: str | None) -> None:
    assert claim_problem(claim(**parts)) == wanted


NOT_OWNER = "PVC ns/web-v was not created for pod ns/web (pod is not owner)"


def owned_by(uid: str, *, controller: bool | None) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid}
    return owner if controller is None else {**owner, "controller": controller}


@pytest.mark.parametrize(
    ("owners", "wanted"),
    [
        ([owned_by("u1", controller=True)], None),
        ([owned_by("other", controller=False), owned_by("u1", controller=True)], None),
        ([owned_by("u1", controller=False)], NOT_OWNER),
        ([owned_by("u1", controller=None)], NOT_OWNER),
        ([owned_by("other", controller=True)], NOT_OWNER),
        ([], NOT_OWNER),
        (None, NOT_OWNER),
    ],
)
def test_the_claim_of_an_ephemeral_volume_is_the_pods_own_NODE_214(
    owners: list[dict[str, Any]] | None, wanted: str | None
) -> None:
    found = claim(metadata={"name": "web-v", "ownerReferences": owners})
    assert foreign(POD, volume(ephemeral={}), found) == wanted


def test_any_pod_may_use_a_claim_that_it_names_NODE_214() -> None:
    assert foreign(POD, volume(persistentVolumeClaim={"claimName": "d"}), claim()) is None
    assert foreign(POD, volume(emptyDir={}), claim()) is None
    named = volume(persistentVolumeClaim={"claimName": "d"}, ephemeral={})
    assert foreign(POD, named, claim()) is None
    nameless = "PVC ns/ was not created for pod ns/web (pod is not owner)"
    assert foreign(POD, volume(ephemeral={}), claim()) == nameless


def test_kinds_and_drivers_that_are_not_there_NODE_214() -> None:
    assert no_plugin("v") == (
        'failed to get Plugin from volumeSpec for volume "v" err=no volume plugin matched'
    )
    assert no_driver("d") == (
        "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name d not found in "
        "the list of registered CSI drivers"
    )
