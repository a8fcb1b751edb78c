"""lightkube's AsyncClient over the in-process transport, in virtual time."""

import asyncio

import httpx2
import lightkube
import pytest
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import Cluster, Context, User
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.core_v1 import Container, ObjectReference, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Event, Node, Pod
from lightkube.types import OnErrorAction, OnErrorResult, PatchType

from fakekubeapi import FakeApi
from fakekubeapi.httpx_transport import InProcessTransport

pytestmark = pytest.mark.virtual_time

CONFIG = SingleConfig(
    context_name="fake",
    context=Context(cluster="fake", user="fake"),
    cluster=Cluster(server="http://fakekubeapi", insecure=True),
    user=User(),
)


def client_of(api: FakeApi) -> lightkube.AsyncClient:
    return lightkube.AsyncClient(CONFIG, transport=InProcessTransport(api))


def make_pod(name: str) -> Pod:
    spec = PodSpec(nodeName="n", containers=[Container(name="m", image="busybox:1")])
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


async def test_the_life_of_a_pod() -> None:
    async with client_of(FakeApi()) as client:
        made = await client.create(make_pod("a"))
        assert made.metadata.uid
        listed = [pod async for pod in client.list(Pod, namespace="*")]
        assert [pod.metadata.name for pod in listed] == ["a"]
        patched = await client.patch(
            Pod.Status,
            "a",
            {"status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]}},
            namespace="default",
            patch_type=PatchType.STRATEGIC,
        )
        assert patched.status.phase == "Running"
        await client.delete(Pod, "a", namespace="default")
        found = await client.get(Pod, "a", namespace="default")
        assert found.metadata.deletionGracePeriodSeconds == 30
        await client.delete(Pod, "a", namespace="default", grace_period=0)
        with pytest.raises(lightkube.ApiError, match='pods "a" not found') as caught:
            await client.get(Pod, "a", namespace="default")
        assert caught.value.status.code == 404


async def test_nodes_leases_and_events() -> None:
    async with client_of(FakeApi()) as client:
        await client.create(Node(metadata=ObjectMeta(name="n")))
        with pytest.raises(lightkube.ApiError) as caught:
            await client.create(Node(metadata=ObjectMeta(name="n")))
        assert caught.value.status.reason == "AlreadyExists"
        meta = ObjectMeta(name="n", namespace="kube-node-lease")
        lease = await client.create(Lease(metadata=meta, spec=LeaseSpec(holderIdentity="n")))
        await client.replace(lease)
        about = ObjectReference(kind="Pod", namespace="default", name="a")
        event = Event(
            metadata=ObjectMeta(name="e", namespace="default"),
            involvedObject=about,
            reason="Pulled",
        )
        assert (await client.create(event)).reason == "Pulled"


async def test_a_watch_streams_over_long_waits() -> None:
    api = FakeApi()
    loop = asyncio.get_running_loop()
    seen: list[tuple[float, str, str]] = []
    async with client_of(api) as client:

        async def follow() -> None:
            fields = {"spec.nodeName": "n"}
            async for kind, pod in client.watch(Pod, namespace="*", fields=fields):
                seen.append((loop.time(), kind, pod.metadata.name))

        task = asyncio.create_task(follow())
        for hour in range(3):
            await asyncio.sleep(3600)
            await client.create(make_pod(f"p{hour}"))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen == [
        (3600.0, "ADDED", "p0"),
        (7200.0, "ADDED", "p1"),
        (10800.0, "ADDED", "p2"),
    ]
    assert api.store._waiting == []


async def test_a_watch_goes_on_after_its_server_timeout_without_gaps() -> None:
    api = FakeApi()
    seen: list[str] = []
    async with client_of(api) as client:

        async def follow() -> None:
            async for _, pod in client.watch(Pod, namespace="*", server_timeout=60):
                seen.append(pod.metadata.name)
                if len(seen) == 4:
                    return

        task = asyncio.create_task(follow())
        for number in range(4):
            await asyncio.sleep(45)
            await client.create(make_pod(f"p{number}"))
        await task
    assert seen == ["p0", "p1", "p2", "p3"]
    watches = [r for r in api.requests("GET", "^/api/v1/pods$") if "watch" in r.params]
    assert len(watches) > 2


async def test_a_forgotten_version_reaches_the_client_as_410() -> None:
    api = FakeApi()
    async with client_of(api) as client:
        await client.create(make_pod("a"))
        api.compact()
        with pytest.raises(lightkube.ApiError) as caught:
            async for _ in client.watch(Pod, namespace="*", resource_version="2"):
                pass
        assert caught.value.status.code == 410

        def again(error: Exception, count: int) -> OnErrorResult:
            return OnErrorResult(OnErrorAction.RETRY, sleep=1)

        watch = client.watch(Pod, namespace="*", resource_version="2", on_error=again)
        kind, pod = await anext(aiter(watch))
        assert (kind, pod.metadata.name) == ("ADDED", "a")


async def test_an_outage_is_a_connection_error() -> None:
    api = FakeApi()
    async with client_of(api) as client:

        async def follow() -> None:
            async for _ in client.watch(Pod, namespace="*"):
                pass

        task = asyncio.create_task(follow())
        await asyncio.sleep(10)
        with api.down():
            with pytest.raises(httpx2.ConnectError):
                await client.get(Node, "n")
            with pytest.raises(httpx2.ReadError):
                await task
