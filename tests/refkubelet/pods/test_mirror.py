"""Mirror pods, against fakekubeapi in virtual time (MIRR-022..029, SRC-052)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from api_world import STATIC_UID, World, running_world, static_pod

from refkubelet.api.kinds import PODS
from refkubelet.model.objects import Node, decode_pod, to_dict
from refkubelet.model.pod import uid
from refkubelet.pods.mirror import MirrorClient, MirrorError, mirror_pod

pytestmark = pytest.mark.virtual_time


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    async with running_world() as found:
        yield found


def mirror_client(world: World, node: Node | None) -> MirrorClient:
    return MirrorClient(world.client, "n1", lambda: node)


async def test_the_mirror_is_posted_as_a_real_kubelet_posts_it_MIRR_022_MIRR_023(
    world: World,
) -> None:
    """Against the recorded request of s20."""

    node = await world.node()
    await mirror_client(world, node).create_mirror(static_pod())
    body = world.api.requests("POST", "/api/v1/namespaces/default/pods")[-1].body
    assert node.metadata is not None
    assert body["metadata"] == {
        "name": "st-n1",
        "namespace": "default",
        "uid": STATIC_UID,
        "annotations": {
            "kubernetes.io/config.hash": STATIC_UID,
            "kubernetes.io/config.mirror": STATIC_UID,
            "kubernetes.io/config.seen": "2026-11-21T09:22:20.483347357Z",
            "kubernetes.io/config.source": "file",
        },
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "name": "n1",
                "uid": node.metadata.uid,
                "controller": True,
            }
        ],
    }
    assert uid(await world.client.get(PODS, "st-n1", "default")) != STATIC_UID


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (None, "node n1 is not known yet"),
        ({"name": "n1"}, "UID unset for node n1"),
        (
            {"name": "n1", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "node n1 is being deleted",
        ),
    ],
)
async def test_no_mirror_without_a_usable_node_MIRR_024(
    world: World, metadata: dict[str, Any] | None, reason: str
) -> None:
    node = msgspec.convert({"metadata": metadata}, Node) if metadata else None
    with pytest.raises(MirrorError, match=reason):
        await mirror_client(world, node).create_mirror(static_pod())
    await mirror_client(world, node).reconcile(static_pod(), None)  # only logged: MIRR-021
    assert world.api.requests("POST") == []


async def test_an_outdated_mirror_is_replaced_MIRR_025(world: World) -> None:
    node = await world.node()
    mirrors = mirror_client(world, node)
    await mirrors.reconcile(static_pod(), None)
    first = await world.client.get(PODS, "st-n1", "default")
    await mirrors.reconcile(static_pod(), first)
    assert len(world.api.requests("POST", "/api/v1/namespaces/default/pods")) == 1
    value = to_dict(static_pod())
    value["metadata"]["annotations"]["kubernetes.io/config.hash"] = "other"
    await mirrors.reconcile(decode_pod(value), first)
    second = await world.client.get(PODS, "st-n1", "default")
    assert uid(second) != uid(first)
    deletion = world.api.requests("DELETE")[-1].body
    assert deletion["gracePeriodSeconds"] == 0
    assert deletion["preconditions"] == {"uid": uid(first)}


async def test_a_mirror_being_deleted_is_replaced_at_once_MIRR_029(world: World) -> None:
    node = await world.node()
    mirrors = mirror_client(world, node)
    await mirrors.create_mirror(static_pod())
    await world.client.delete(PODS, "st-n1", "default", grace_period_s=30)
    dying = await world.client.get(PODS, "st-n1", "default")
    await mirrors.reconcile(static_pod(), dying)
    fresh = await world.client.get(PODS, "st-n1", "default")
    assert uid(fresh) != uid(dying)
    assert fresh.metadata is not None
    assert fresh.metadata.deletionTimestamp is None


async def test_missing_and_foreign_mirrors_are_no_error_MIRR_026(world: World) -> None:
    mirrors = mirror_client(world, await world.node())
    assert not await mirrors.delete_mirror("st-n1_default", None)
    await mirrors.create_mirror(static_pod())
    assert not await mirrors.delete_mirror("st-n1_default", "other")
    assert await mirrors.delete_mirror("st-n1_default", None)  # orphans: MIRR-031
    assert "preconditions" not in world.api.requests("DELETE")[-1].body


async def test_standalone_there_are_no_mirrors_SRC_052() -> None:
    mirrors = MirrorClient(None, "n1", lambda: None)
    await mirrors.create_mirror(static_pod())
    assert not await mirrors.delete_mirror("st-n1_default", None)


def test_the_mirror_never_changes_the_static_pod() -> None:
    static = static_pod()
    before = to_dict(static)
    mirror_pod(static, msgspec.convert({"metadata": {"name": "n1", "uid": "u"}}, Node))
    assert to_dict(static) == before
