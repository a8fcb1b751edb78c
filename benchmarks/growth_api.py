"""The dimensions of the fake API server: objects, watches, clients; see `growth`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

from crash_loop import virtual_clock
from growth import Dimension, Meter

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.in_process import InProcessWire
from simclock import run_virtual

MAPS: Final = "/api/v1/namespaces/default/configmaps"
EVENTS: Final = "/api/v1/namespaces/default/events"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
Scenario = Callable[[FakeApi, int, Meter], Awaitable[None]]


def with_api(body: Scenario, **options: Any) -> Callable[[int, Meter], None]:
    """The scenario `body` as a dimension wants it."""

    def run(size: int, meter: Meter) -> None:
        async def main() -> None:
            api = FakeApi(virtual_clock(), options=ServerOptions(request_limit=100, **options))
            await body(api, size, meter)

        run_virtual(main, limit_s=100_000.0)

    return run


async def must(api: FakeApi, method: str, path: str, **more: Any) -> Any:
    """The body of the answer. Raises AssertionError where it is no success."""
    answer = await api.request(method, path, **more)
    assert answer.status < 300, answer.body
    return answer.body


async def fill(api: FakeApi, size: int) -> None:
    """Create so many ConfigMaps."""
    for number in range(size):
        meta = {"name": f"m{number}", "labels": {"odd": str(number % 2), f"own{number}": "x"}}
        await must(api, "POST", MAPS, body={"metadata": meta, "data": {"a": "b"}})


async def created(api: FakeApi, size: int, meter: Meter) -> None:
    """Objects are created, read one by one, and deleted."""
    with meter:
        await fill(api, size)
        for number in range(size):
            await must(api, "GET", f"{MAPS}/m{number}")
        for number in range(size):
            await must(api, "DELETE", f"{MAPS}/m{number}")


async def patched(api: FakeApi, size: int, meter: Meter) -> None:
    """Each object is patched in two ways."""
    await fill(api, size)
    with meter:
        for number in range(size):
            for kind in (MERGE, STRATEGIC):
                body = {"data": {kind.partition("-")[0].partition("/")[2]: "c"}}
                await must(api, "PATCH", f"{MAPS}/m{number}", body=body, content_type=kind)


async def applied(api: FakeApi, size: int, meter: Meter) -> None:
    """Each object is applied."""
    with meter:
        for number in range(size):
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"m{number}"},
                "data": {"a": "b"},
            }
            await must(
                api,
                "PATCH",
                f"{MAPS}/m{number}",
                body=body,
                params={"fieldManager": "bench"},
                content_type="application/apply-patch+yaml",
            )


async def big_object(api: FakeApi, size: int, meter: Meter) -> None:
    """An object with many keys is created, patched and applied."""
    data = {f"k{n}": "v" for n in range(size)}
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "big"},
        "data": data,
    }
    with meter:
        await must(api, "POST", MAPS, body=body)
        more = {"data": dict.fromkeys(data, "w")}
        await must(api, "PATCH", f"{MAPS}/big", body=more, content_type=STRATEGIC)
        await must(
            api,
            "PATCH",
            f"{MAPS}/big",
            body=body,
            params={"fieldManager": "bench", "force": "true"},
            content_type="application/apply-patch+yaml",
        )


async def big_pod(api: FakeApi, size: int, meter: Meter) -> None:
    """A pod of many containers is created, its status is patched, and it is applied."""
    each = [
        {
            "name": f"c{n}",
            "image": "i",
            "ports": [{"containerPort": 80 + n}],
            "volumeMounts": [{"name": f"v{n}", "mountPath": f"/v{n}"}],
        }
        for n in range(size)
    ]
    volumes = [{"name": f"v{n}", "emptyDir": {}} for n in range(size)]
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "big"},
        "spec": {"containers": each, "volumes": volumes, "automountServiceAccountToken": False},
    }
    path = "/api/v1/namespaces/default/pods"
    with meter:
        await must(api, "POST", path, body=body)
        states = [
            {
                "name": f"c{n}",
                "image": "i",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {},
            }
            for n in range(size)
        ]
        status = {"status": {"containerStatuses": states}}
        await must(api, "PATCH", f"{path}/big/status", body=status, content_type=STRATEGIC)
        await must(
            api,
            "PATCH",
            f"{path}/big",
            body=body,
            params={"fieldManager": "bench", "force": "true"},
            content_type="application/apply-patch+yaml",
        )


async def listed(api: FakeApi, size: int, meter: Meter) -> None:
    """The whole list, as JSON."""
    await fill(api, size)
    wire = InProcessWire(api)
    with meter:
        status, body = await wire.request("GET", MAPS)
    assert (status, body.count(b'"uid"')) == (200, size)


async def selected(api: FakeApi, size: int, meter: Meter) -> None:
    """Lists by labels and by name."""
    await fill(api, size)
    with meter:
        for selector in ("odd=1", "odd in (1,2),!own3", "own7"):
            await must(api, "GET", MAPS, params={"labelSelector": selector})
        await must(api, "GET", MAPS, params={"fieldSelector": "metadata.name=m5"})


async def chunks(api: FakeApi, size: int, meter: Meter) -> None:
    """A list in parts of ten, as kubectl asks for parts of 500."""
    await fill(api, size)
    seen, params = 0, {"limit": "10"}
    with meter:
        while True:
            body = await must(api, "GET", MAPS, params=params)
            seen += len(body["items"])
            token = body["metadata"].get("continue")
            if not token:
                break
            params["continue"] = token
    assert seen == size


async def small_lists(api: FakeApi, size: int, meter: Meter) -> None:
    """Short lists of one kind, while there are many objects of another."""
    await fill(api, size)
    with meter:
        for _ in range(size):
            await must(api, "GET", "/api/v1/namespaces/default/secrets")


async def watched(api: FakeApi, size: int, meter: Meter, watchers: int, path: str) -> None:
    """Objects are created while so many watch what is at `path`."""
    await watches(api, size, meter, [path] * watchers)


async def own_watches(api: FakeApi, size: int, meter: Meter) -> None:
    """Each object has a watch of its own, as a kubelet has it, and changes once."""
    await fill(api, size)
    async with AsyncExitStack() as stack:
        seen = [
            await open_watch(stack, api, MAPS, {"fieldSelector": f"metadata.name=m{n}"})
            for n in range(size)
        ]
        with meter:
            for number in range(size):
                path = f"{MAPS}/m{number}"
                await must(api, "PATCH", path, body={"data": {"a": "c"}}, content_type=MERGE)
                await asyncio.sleep(0.01)
        assert [len(events) for events in seen] == [2] * size


async def watches(api: FakeApi, size: int, meter: Meter, paths: list[str]) -> None:
    async with AsyncExitStack() as stack:
        seen = [await open_watch(stack, api, path, {}) for path in paths]
        with meter:
            await fill(api, size)
            await asyncio.sleep(0.01)
        wanted = [size if path == MAPS else 0 for path in paths]
        assert [len(events) for events in seen] == wanted


async def idle_watches(api: FakeApi, size: int, meter: Meter) -> None:
    """A hundred objects are created while many watch something else."""
    async with AsyncExitStack() as stack:
        for _ in range(size):
            await open_watch(stack, api, "/api/v1/nodes", {})
        with meter:
            for _ in range(size):
                await must(api, "GET", f"{MAPS}")
            await fill(api, size)


async def open_watch(
    stack: AsyncExitStack, api: FakeApi, path: str, params: dict[str, str]
) -> list[bytes]:
    """Open a watch; what it shows comes into the list."""
    wire = InProcessWire(api)
    watch = wire.watch(path, {"watch": "true", **params})
    status, _, lines = await stack.enter_async_context(watch)
    assert status == 200
    seen: list[bytes] = []

    async def read() -> None:
        async for line in lines:
            seen.append(line)

    task = asyncio.create_task(read())

    async def end() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(end)
    await asyncio.sleep(0)
    return seen


async def late_watch(api: FakeApi, size: int, meter: Meter) -> None:
    """A watch that begins at the first revision gets all that has happened since."""
    await fill(api, size)
    async with AsyncExitStack() as stack:
        with meter:
            seen = await open_watch(stack, api, MAPS, {"resourceVersion": "1"})
            await asyncio.sleep(0.01)
        assert len(seen) >= size


async def expired(api: FakeApi, size: int, meter: Meter) -> None:
    """Far more changes than are remembered."""
    await must(api, "POST", MAPS, body={"metadata": {"name": "one"}})
    with meter:
        for number in range(size):
            body = {"data": {"a": str(number)}}
            await must(api, "PATCH", f"{MAPS}/one", body=body, content_type=MERGE)
        await api.request("GET", MAPS, params={"watch": "true", "resourceVersion": "1"})


async def events(api: FakeApi, size: int, meter: Meter, count: int) -> None:
    """Events, each of which is counted up so often."""
    with meter:
        for number in range(size // count):
            about = {"kind": "Pod", "name": "p", "namespace": "default"}
            body = {"metadata": {"name": f"e{number}"}, "involvedObject": about, "count": 1}
            await must(api, "POST", EVENTS, body=body)
            for again in range(2, count + 1):
                path, more = f"{EVENTS}/e{number}", {"count": again}
                await must(api, "PATCH", path, body=more, content_type=STRATEGIC)


async def deleted_collection(api: FakeApi, size: int, meter: Meter) -> None:
    """All objects of a namespace go at once."""
    await fill(api, size)
    with meter:
        await must(api, "DELETE", MAPS)


async def namespaces(api: FakeApi, size: int, meter: Meter) -> None:
    """Namespaces that come and go, each with an object."""
    with meter:
        for number in range(size):
            name = f"ns{number}"
            await must(api, "POST", "/api/v1/namespaces", body={"metadata": {"name": name}})
            path = f"/api/v1/namespaces/{name}/configmaps"
            await must(api, "POST", path, body={"metadata": {"name": "one"}})
        for number in range(size):
            await must(api, "DELETE", f"/api/v1/namespaces/ns{number}")


async def services(api: FakeApi, size: int, meter: Meter) -> None:
    """Services that get an address each."""
    with meter:
        for number in range(size):
            body = {"metadata": {"name": f"s{number}"}, "spec": {"ports": [{"port": 80}]}}
            await must(api, "POST", "/api/v1/namespaces/default/services", body=body)


async def owned(api: FakeApi, size: int, meter: Meter) -> None:
    """Objects with an owner, which goes, and one after another goes with it."""
    with meter:
        for number in range(size):
            owner = await must(api, "POST", MAPS, body={"metadata": {"name": f"o{number}"}})
            reference = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": f"o{number}",
                "uid": owner["metadata"]["uid"],
            }
            meta = {"name": f"d{number}", "ownerReferences": [reference]}
            await must(api, "POST", MAPS, body={"metadata": meta})
        for number in range(size):
            await must(api, "DELETE", f"{MAPS}/o{number}")
        await asyncio.sleep(1.0)


DIMENSIONS: Final = {
    "objects": Dimension("objects, created and deleted", 20, with_api(created)),
    "patches": Dimension("objects that are patched", 20, with_api(patched)),
    "applies": Dimension("objects that are applied", 20, with_api(applied)),
    "big-object": Dimension("keys of an object", 50, with_api(big_object)),
    "big-pod": Dimension("containers, ports and mounts of a pod object", 10, with_api(big_pod)),
    "list": Dimension("objects in a list", 50, with_api(listed)),
    "selectors": Dimension("objects that are selected", 50, with_api(selected)),
    "chunks": Dimension("objects in a list of parts", 50, with_api(chunks)),
    "small-lists": Dimension("lists beside many objects", 50, with_api(small_lists)),
    "watched": Dimension(
        "changes that five watch", 20, with_api(partial(watched, watchers=5, path=MAPS))
    ),
    "own-watches": Dimension("objects with a watch of their own", 10, with_api(own_watches)),
    "idle-watches": Dimension("changes beside watches of others", 10, with_api(idle_watches)),
    "late-watch": Dimension("changes that a late watch gets", 50, with_api(late_watch)),
    "expired": Dimension("changes that are forgotten", 20, with_api(expired, history=100)),
    "api-events": Dimension("events", 20, with_api(partial(events, count=1))),
    "counted-events": Dimension(
        "events that are counted up", 20, with_api(partial(events, count=10))
    ),
    "deleted-collection": Dimension("objects that go at once", 50, with_api(deleted_collection)),
    "namespaces": Dimension("namespaces", 10, with_api(namespaces)),
    "api-services": Dimension("services with an address", 20, with_api(services)),
    "owned": Dimension("objects with owners", 10, with_api(owned)),
}
