"""Watches: order, resuming, selectors, time-outs, forgotten history, outages."""

import asyncio
from typing import Any

import pytest
from fakekubeapi_helpers import (
    CONFIGMAPS,
    PODS,
    configmap,
    create,
    follow,
    get,
    names,
    ok,
    patch,
    pod,
    refused,
)
from hypothesis import given
from hypothesis import strategies as st

from fakekubeapi import ApiUnreachable, FakeApi, ServerOptions
from fakekubeapi.storage.changes import Change, Key
from fakekubeapi.storage.feeds import Feed
from fakekubeapi.storage.selectors import Predicate, label_selector
from fakekubeapi.storage.store import Store
from simclock import NothingToWaitFor, Rng, run_virtual

pytestmark = pytest.mark.virtual_time

BRIEF = {"timeoutSeconds": "1"}


async def seen(api: FakeApi, path: str, **params: str) -> list[tuple[str, str]]:
    """Type and name of the events of a watch of one second."""
    return [
        (event["type"], event["object"]["metadata"].get("name", ""))
        async for event in api.watch(path, params={**params, **BRIEF})
    ]


async def test_without_a_version_the_present_comes_first() -> None:
    api = FakeApi()
    await create(api, CONFIGMAPS, configmap("a"))
    for params in ({}, {"resourceVersion": "0"}):
        assert await seen(api, CONFIGMAPS, **params) == [("ADDED", "a")]


async def test_a_watch_from_a_list_misses_nothing_SRC_050() -> None:
    api = FakeApi()
    await create(api, CONFIGMAPS, configmap("a"))
    version = (await get(api, CONFIGMAPS))["metadata"]["resourceVersion"]
    await create(api, CONFIGMAPS, configmap("b"))
    await patch(api, f"{CONFIGMAPS}/a", {"data": {"k": "2"}})
    await api.request("DELETE", f"{CONFIGMAPS}/b")
    assert await seen(api, CONFIGMAPS, resourceVersion=version) == [
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12), st.integers(0, 12))
async def test_a_watch_can_be_cut_anywhere_and_resumed(
    steps: list[tuple[str, bool]], cut: int
) -> None:
    """Watching to any event and then from its resourceVersion sees what one long watch sees."""

    api = FakeApi()
    start = (await get(api, CONFIGMAPS))["metadata"]["resourceVersion"]
    for number, (name, keep) in enumerate(steps):
        body = {"metadata": {"name": name}, "data": {"n": str(number)}}
        if not (await api.request("PUT", f"{CONFIGMAPS}/{name}", body=body)).ok:
            await create(api, CONFIGMAPS, body)
        if not keep:
            await api.request("DELETE", f"{CONFIGMAPS}/{name}")
    params = {"resourceVersion": start, **BRIEF}
    whole = [event async for event in api.watch(CONFIGMAPS, params=params)]
    first = whole[:cut]
    last = first[-1]["object"]["metadata"]["resourceVersion"] if first else start
    params = {"resourceVersion": last, **BRIEF}
    assert first + [event async for event in api.watch(CONFIGMAPS, params=params)] == whole
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in whole]
    assert versions == sorted(set(versions))


async def test_an_object_enters_and_leaves_a_selection() -> None:
    api = FakeApi()
    version = (await get(api, CONFIGMAPS))["metadata"]["resourceVersion"]
    await create(api, CONFIGMAPS, configmap("a"))
    for label in ("blue", "blue", None):
        change = {"metadata": {"labels": {"colour": label}}, "data": {"l": str(label)}}
        ok(await patch(api, f"{CONFIGMAPS}/a", change))
        ok(await patch(api, f"{CONFIGMAPS}/a", {"data": {"again": str(label)}}))
    blue = await seen(api, CONFIGMAPS, resourceVersion=version, labelSelector="colour=blue")
    assert blue == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_kubelet_watches_its_own_pods_SRC_050() -> None:
    api = FakeApi()
    await create(api, PODS, pod("mine", node="n"))
    await create(api, PODS, pod("other", node="m"))
    await create(api, PODS, pod("loose", node=None))
    selector = {"fieldSelector": "spec.nodeName=n"}
    assert names(await get(api, "/api/v1/pods", **selector)) == ["mine"]
    version = (await get(api, "/api/v1/pods"))["metadata"]["resourceVersion"]
    binding = {"metadata": {"name": "loose"}, "target": {"name": "n"}}
    ok(await api.request("POST", f"{PODS}/loose/binding", body=binding))
    events = await seen(api, "/api/v1/pods", resourceVersion=version, **selector)
    assert events == [("ADDED", "loose")]


async def test_a_watch_waits_for_hours_of_virtual_time() -> None:
    api = FakeApi()
    arrived: list[tuple[float, str]] = []
    loop = asyncio.get_running_loop()

    async def follow_times() -> None:
        async for event in api.watch(CONFIGMAPS, params={"timeoutSeconds": "7200"}):
            arrived.append((loop.time(), event["object"]["metadata"]["name"]))

    task = asyncio.create_task(follow_times())
    await asyncio.sleep(3600)
    await create(api, CONFIGMAPS, configmap("late"))
    await task
    assert arrived == [(3600.0, "late")]
    assert loop.time() == 7200.0


def test_a_watch_of_nothing_is_nothing_to_wait_for() -> None:
    with pytest.raises(NothingToWaitFor, match="in follow for a Future"):
        run_virtual(lambda: follow(FakeApi(), CONFIGMAPS, []))


async def test_one_name_can_be_watched() -> None:
    api = FakeApi()
    for name in ("a", "b"):
        await create(api, CONFIGMAPS, configmap(name))
    assert await seen(api, f"{CONFIGMAPS}/a") == [("ADDED", "a")]


async def test_streaming_list_ends_with_a_bookmark_SRC_051() -> None:
    api = FakeApi()
    await create(api, PODS, pod())
    params = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        **BRIEF,
    }
    events = [event async for event in api.watch("/api/v1/pods", params=params)]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "BOOKMARK"]
    mark = events[1]["object"]
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["metadata"]["resourceVersion"] == str(api.store.revision)
    assert mark["kind"] == "Pod"


def gone(events: list[dict[str, Any]]) -> None:
    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"].startswith("too old resource version: ")


async def test_a_forgotten_version_is_410() -> None:
    api = FakeApi(options=ServerOptions(history=3))
    version = (await get(api, CONFIGMAPS))["metadata"]["resourceVersion"]
    for number in range(5):
        await create(api, CONFIGMAPS, configmap(f"c{number}"))
    params = {"resourceVersion": version}
    gone([event async for event in api.watch(CONFIGMAPS, params=params)])
    newest = str(api.store.revision)
    assert await seen(api, CONFIGMAPS, resourceVersion=newest) == []


async def test_compact_ends_watches_that_lag() -> None:
    api = FakeApi()
    version = (await get(api, CONFIGMAPS))["metadata"]["resourceVersion"]
    await create(api, CONFIGMAPS, configmap("a"))
    api.compact()
    params = {"resourceVersion": version}
    gone([event async for event in api.watch(CONFIGMAPS, params=params)])


NEVER = "Timeout: Too large resource version: 999, current: 8"


@pytest.mark.parametrize("path", [CONFIGMAPS, f"{CONFIGMAPS}/c"])
async def test_a_list_waits_three_seconds_for_its_version(path: str) -> None:
    api, loop = FakeApi(), asyncio.get_running_loop()
    await get(api, CONFIGMAPS)
    began = loop.time()
    answer = await api.request("GET", path, params={"resourceVersion": "999"})
    assert refused(answer, 504, "Timeout") == NEVER
    assert answer.body["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    assert loop.time() - began == 3.0
    listing = asyncio.create_task(api.request("GET", path, params={"resourceVersion": "9"}))
    await asyncio.sleep(1)
    await create(api, CONFIGMAPS, configmap("c"))
    assert ok(await listing)["metadata"]["resourceVersion"] == "9"
    assert loop.time() - began == 4.0


async def test_a_watch_from_the_future_waits_for_it() -> None:
    api = FakeApi()
    await get(api, CONFIGMAPS)
    future = str(api.store.revision + 2)
    watching = asyncio.create_task(seen(api, CONFIGMAPS, resourceVersion=future))
    await asyncio.sleep(0.1)
    for name in ("before", "then", "after"):
        await create(api, CONFIGMAPS, configmap(name))
    assert await watching == [("ADDED", "after")]


async def test_a_streaming_list_waits_three_seconds_for_its_version() -> None:
    api = FakeApi()
    await get(api, CONFIGMAPS)
    params = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    asked = {**params, "resourceVersion": "999"}
    events = [event async for event in api.watch(CONFIGMAPS, params=asked)]
    assert [event["type"] for event in events] == ["ERROR"]
    assert (events[0]["object"]["code"], events[0]["object"]["message"]) == (504, NEVER)
    asked = {**params, "resourceVersion": str(api.store.revision + 1)}
    watching = asyncio.create_task(seen(api, CONFIGMAPS, **asked))
    await asyncio.sleep(0.5)
    await create(api, CONFIGMAPS, configmap("c"))
    assert await watching == [("ADDED", "c")]


async def test_bookmarks_come_in_between_and_at_the_end() -> None:
    api, loop = FakeApi(options=ServerOptions(bookmark_every_s=60)), asyncio.get_running_loop()
    await create(api, CONFIGMAPS, configmap("c"))
    events: list[tuple[float, str]] = []

    async def watch(**params: str) -> None:
        events.clear()
        asked = {"resourceVersion": "8", "timeoutSeconds": "150", **params}
        async for event in api.watch(CONFIGMAPS, params=asked):
            events.append((loop.time() - began, event["type"]))

    began = loop.time()
    await watch(allowWatchBookmarks="true")
    marks = [(at, "BOOKMARK") for at in (60.0, 120.0, 150.0)]
    assert events == [(0.0, "ADDED"), *marks]
    began = loop.time()
    await watch()
    assert events == [(0.0, "ADDED")]


async def test_an_outage_breaks_open_watches_even_if_it_is_over_at_once() -> None:
    api = FakeApi()
    task = asyncio.create_task(follow(api, CONFIGMAPS, []))
    await asyncio.sleep(1)
    with api.down():
        pass
    with pytest.raises(ApiUnreachable):
        await task


async def test_watchers_leave_nothing_behind() -> None:
    api = FakeApi()
    tasks = [asyncio.create_task(follow(api, CONFIGMAPS, [])) for _ in range(3)]
    await asyncio.sleep(1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert api.store._waiting == []


LABELS = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app!=web", False),
        ("other!=x", True),
        ("app", True),
        ("other", False),
        ("!other", True),
        ("! app", False),
        ("app in (web, db)", True),
        ("app in (db),tier=front", False),
        ("app notin (db)", True),
        ("other notin (db)", True),
    ],
)
def test_label_selectors(selector: str, expected: bool) -> None:
    assert label_selector(selector)({"metadata": {"labels": LABELS}}) is expected


@pytest.mark.parametrize(
    ("path", "kind", "empty"),
    [
        ("/api/v1/pods", "Pod", {"spec": {"containers": None}, "status": {}}),
        ("/apis/storage.k8s.io/v1/csinodes", "CSINode", {"spec": {"drivers": None}}),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            "VolumeAttachment",
            {
                "spec": {"attacher": "", "source": {}, "nodeName": ""},
                "status": {"attached": False},
            },
        ),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", "PriorityClass", {"value": 0}),
        ("/api/v1/configmaps", "ConfigMap", {}),
        ("/api/v1/services", "Service", {"spec": {}, "status": {"loadBalancer": {}}}),
    ],
)
async def test_bookmarks_are_empty_objects_as_go_writes_them(
    path: str, kind: str, empty: dict[str, Any]
) -> None:
    api = FakeApi()
    params = {"allowWatchBookmarks": "true", "timeoutSeconds": "1", "resourceVersion": "8"}
    mark = [event async for event in api.watch(path, params=params)][-1]["object"]
    version = mark.pop("metadata")["resourceVersion"]
    group = path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]
    assert (version, mark) == (
        str(api.store.revision),
        {"kind": kind, "apiVersion": group, **empty},
    )


def named(*names: str) -> Predicate:
    return lambda obj: obj["metadata"]["name"] in names


def on(*nodes: str) -> Predicate:
    return lambda obj: obj["spec"].get("nodeName", "") in nodes


WATCHES: tuple[tuple[dict[str, str], Predicate], ...] = (
    ({}, lambda _: True),
    ({"fieldSelector": "metadata.name=a"}, named("a")),
    ({"fieldSelector": "metadata.name!=a"}, named("b", "c")),
    ({"fieldSelector": "metadata.name!=b,metadata.name=a"}, named("a")),
    ({"labelSelector": "x=1"}, lambda obj: obj["metadata"].get("labels", {}).get("x") == "1"),
)
POD_WATCHES: tuple[tuple[dict[str, str], Predicate], ...] = (
    ({}, lambda _: True),
    ({"fieldSelector": "spec.nodeName=n1"}, on("n1")),
    (
        {"fieldSelector": "status.phase=Pending,spec.nodeName=n1"},
        lambda obj: on("n1")(obj) and obj["status"]["phase"] == "Pending",
    ),
    ({"fieldSelector": "spec.nodeName="}, on("")),
    ({"fieldSelector": "status.phase=Running"}, lambda obj: obj["status"]["phase"] == "Running"),
)


def told_of(changes: list[Change], path: str, chosen: Predicate) -> list[tuple[str, str]]:
    """What a watch at the path shall be told of these changes, found without any index."""
    *_, resource = path.split("/")
    space = path.split("/")[4] if "namespaces" in path else None
    told = []
    for change in changes:
        if change.key.resource != resource or space not in (None, change.key.namespace):
            continue
        before = change.previous is not None and chosen(change.previous)
        after = change.type != "DELETED" and chosen(change.object)
        if before or after:
            kind = "DELETED" if not after else "MODIFIED" if before else "ADDED"
            told.append((kind, change.key.name))
    return told


@pytest.mark.parametrize("seed", range(20))
async def test_watches_hear_of_all_that_is_for_them(seed: int) -> None:
    """Those that are open, and those that begin afterwards where these began."""
    rng = Rng(seed).stream("changes")
    api = FakeApi()
    await create(api, "/api/v1/namespaces", {"metadata": {"name": "other"}})
    spaces = ("/api/v1/namespaces/default", "/api/v1/namespaces/other", "/api/v1")
    chosen = [(f"{space}/configmaps", *watch) for space in spaces for watch in WATCHES]
    chosen += [(f"{space}/pods", *watch) for space in spaces for watch in POD_WATCHES]
    first = str(api.store.revision)
    told: list[list[Any]] = [[] for _ in chosen]

    async def listen(path: str, params: dict[str, str], heard: list[Any]) -> None:
        async for event in api.watch(path, params={**params, "resourceVersion": first}):
            heard.append((event["type"], event["object"]["metadata"]["name"]))

    tasks = [
        asyncio.create_task(listen(path, params, heard))
        for (path, params, _), heard in zip(chosen, told, strict=True)
    ]
    for _ in range(60):
        space, name = rng.choice(spaces[:2]), rng.choice("abc")
        maps, pods = f"{space}/configmaps", f"{space}/pods"
        change = rng.randrange(7)
        labels = {"x": str(rng.randrange(2))}
        if change == 0:
            meta = {"name": name, "labels": labels}
            await api.request("POST", maps, body={"metadata": meta})
        elif change == 1:
            await api.request("DELETE", f"{maps}/{name}")
        elif change == 2:
            body: Any = {"metadata": {"labels": labels}}
            merge = "application/merge-patch+json"
            await api.request("PATCH", f"{maps}/{name}", body=body, content_type=merge)
        elif change == 3:
            await api.request("POST", pods, body=pod(name))
        elif change == 4:
            body = {"target": {"name": rng.choice(("n1", "n2"))}}
            await api.request("POST", f"{pods}/{name}/binding", body=body)
        elif change == 5:
            body = {"status": {"phase": rng.choice(("Pending", "Running"))}}
            merge = "application/merge-patch+json"
            await api.request("PATCH", f"{pods}/{name}/status", body=body, content_type=merge)
        else:
            await api.request("DELETE", f"{pods}/{name}", body={"gracePeriodSeconds": 0})
        if rng.random() < 0.5:
            await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(map(len, told)) > 20
    changes = api.store.changes_since(int(first))
    for (path, params, is_chosen), heard in zip(chosen, told, strict=True):
        assert heard == told_of(changes, path, is_chosen), (path, params)
        assert heard == await seen(api, path, **params, resourceVersion=first), (path, params)


async def test_a_change_wakes_the_watches_that_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    woken = 0

    def wake(feed: Feed) -> None:
        nonlocal woken
        woken += 1
        real(feed)

    real = Feed.wake
    monkeypatch.setattr(Feed, "wake", wake)
    api = FakeApi()
    nodes = [pod(f"p{n}") | {"spec": {**pod("p")["spec"], "nodeName": f"n{n}"}} for n in range(50)]
    places = [(CONFIGMAPS, f"metadata.name=m{n}") for n in range(50)]
    places += [(PODS, f"spec.nodeName=n{n}") for n in range(50)]
    places += [("/api/v1/nodes", "")] * 50
    tasks = [
        asyncio.create_task(anext(api.watch(path, params={"fieldSelector": which})))
        for path, which in places
    ]
    await asyncio.sleep(0)
    for number in range(50):
        await create(api, CONFIGMAPS, configmap(f"m{number}"))
        await create(api, PODS, nodes[number])
    await asyncio.wait(tasks[:100])
    assert woken == 100
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_watch_that_nobody_reads_keeps_no_more_than_the_history() -> None:
    api = FakeApi(options=ServerOptions(history=10))
    watch = api.watch(CONFIGMAPS, params={"resourceVersion": str(api.store.revision)})
    reading = asyncio.create_task(anext(watch))
    await asyncio.sleep(0)
    await create(api, CONFIGMAPS, configmap("a"))
    assert (await reading)["type"] == "ADDED"
    for number in range(100):
        await create(api, CONFIGMAPS, configmap(f"m{number}"))
        (feed,) = (f for same in api.store._feeds._by_place.values() for f in same.values())
        assert len(feed._changes) <= 10
    assert (await anext(watch))["object"]["code"] == 410
    await watch.aclose()


@pytest.mark.parametrize("seed", range(10))
def test_keys_are_those_that_a_look_at_all_finds(seed: int) -> None:
    rng = Rng(seed).stream("keys")
    store = Store()
    there: set[Key] = set()
    words = ("", "a", "a-b", "a.b", "ab", "b")
    for _ in range(300):
        key = Key(rng.choice(("pods", "nodes")), rng.choice(words), rng.choice(words[1:]))
        if key in there and rng.random() < 0.5:
            store.remove(key)
            there.discard(key)
        else:
            store.put(key, {"metadata": {"name": key.name}})
            there.add(key)
        space = rng.choice((None, *words))
        after = rng.choice((None, (rng.choice(words), rng.choice(words))))
        assert store.keys("pods", space, after) == sorted(
            k
            for k in there
            if k.resource == "pods"
            and space in (None, k.namespace)
            and (after is None or (k.namespace, k.name) > after)
        )
        assert store.namespaced_keys("a") == sorted(k for k in there if k.namespace == "a")
