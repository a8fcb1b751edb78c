"""What is found by place is what a look at all finds: keys, changes, and who hears of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from fakekubeapi_helpers import CONFIGMAPS, PODS, configmap, create, get, names, pod
from hypothesis import given
from hypothesis import strategies as st

from fakekubeapi import FakeApi, StatusError
from fakekubeapi.storage.changes import EVERYTHING, Change, Key, Object, Place, values_of
from fakekubeapi.storage.feeds import Feed
from fakekubeapi.storage.index import History, KeyIndex
from fakekubeapi.storage.selectors import required_value
from fakekubeapi.storage.store import Store

LIMIT = 12
KINDS = ("pods", "nodes")
SPACES = ("", "a", "a-b")
NAMES = ("a", "b")
NODES = ("", "n1", "n2")
FIELDS = (
    ("", ""),
    *(("spec.nodeName", node) for node in NODES),
    *(("metadata.name", name) for name in NAMES),
)
PLACES = [
    Place(kind, space, *field) for kind in KINDS for space in (None, *SPACES) for field in FIELDS
]


class Write(NamedTuple):
    """An object is stored with that node; None: it is removed if it is there."""

    key: Key
    node: str | None


keys = st.builds(Key, *map(st.sampled_from, (KINDS, SPACES, NAMES)))
writes = st.lists(
    st.builds(Write, keys, st.sampled_from((*NODES, *NODES, None))), min_size=1, max_size=40
)
begin = st.integers(0, 20)
"""The step from which on something is asked: the first question makes an index."""


def fields_of(obj: Object) -> dict[str, str]:
    """What can be asked for, without the function under test."""
    spec = obj.get("spec") or {}
    return {
        "": "",
        "metadata.name": obj["metadata"]["name"],
        "spec.nodeName": spec.get("nodeName", ""),
    }


def is_at(place: Place, key: Key, *objects: Object | None) -> bool:
    """Whether one of the object's states is at the place."""
    return (
        place.resource in ("", key.resource)
        and place.namespace in (None, key.namespace)
        and any(obj and fields_of(obj)[place.path] == place.value for obj in objects)
    )


def is_for(place: Place, change: Change) -> bool:
    return is_at(place, change.key, change.object, change.previous)


def carry_out(store: Store, write: Write) -> None:
    if write.node is not None:
        spec = {"nodeName": write.node} if write.node else {}
        store.put(write.key, {"metadata": {"name": write.key.name}, "spec": spec})
    elif store.get(write.key) is not None:
        store.remove(write.key)


@given(writes, begin)
def test_keys_at_a_place_are_those_of_the_objects_there(steps: list[Write], first: int) -> None:
    store = Store()
    for number, write in enumerate(steps):
        carry_out(store, write)
        if number < first:
            continue
        after = (write.key.namespace, write.key.name)
        for place in PLACES:
            there = sorted(key for key, obj in store._objects.items() if is_at(place, key, obj))
            assert store.keys_at(place) == there
            assert store.keys_at(place, after) == [key for key in there if key[1:] > after]
            if not place.path:
                last = there[-1] if there else None
                assert store.last_key(place.resource, place.namespace) == last


@given(writes, begin, st.integers(0, LIMIT))
def test_changes_at_a_place_are_those_of_a_look_at_all(
    steps: list[Write], first: int, back: int
) -> None:
    store, every = Store(history=LIMIT), list[Change]()
    for number, write in enumerate(steps):
        revision = store.revision
        carry_out(store, write)
        every += store.changes_since(revision)
        since = max(0, store.revision - back)
        newer = [change for change in every if change.revision > since]
        for place in PLACES if number >= first else ():
            assert store._history.since(since, place) == [c for c in newer if is_for(place, c)]
        if store.revision > LIMIT:
            with pytest.raises(StatusError, match="too old resource version"):
                store._history.since(store.revision - LIMIT - 1, PLACES[0])


@given(writes, st.lists(st.sampled_from((EVERYTHING, *PLACES)), min_size=1), begin)
def test_feeds_hear_of_the_changes_at_their_place(
    steps: list[Write], asked: list[Place], opened_at: int
) -> None:
    """Also one that is opened later and asks for what has been, and none that is closed."""
    store = Store()
    feeds = [store.follow(place, 0) for place in asked[::2]]
    for number, write in enumerate(steps):
        if number == opened_at:
            feeds += [store.follow(place, 0) for place in asked[1::2]]
        carry_out(store, write)
    every = store.changes_since(0)
    for feed in feeds:
        assert feed.take() == [change for change in every if is_for(feed.place, change)]
        store.unfollow(feed)
    store.put(Key("pods", "a", "a"), {"metadata": {"name": "a"}})
    assert all(feed.is_empty for feed in feeds)
    assert not store._feeds._by_place
    assert not store._feeds._paths


def change_of(revision: int, now: str, before: str | None = None, resource: str = "pods") -> Change:
    """Of the pod `a`, whose node was `before` and is `now`."""
    objects = [{"metadata": {"name": "a"}, "spec": {"nodeName": node}} for node in (now, before)]
    previous = None if before is None else objects[1]
    kind: Any = "ADDED" if before is None else "MODIFIED"
    return Change(revision, kind, Key(resource, "x", "a"), objects[0], previous)


def on(node: str, namespace: str | None = None) -> Place:
    return Place("pods", namespace, "spec.nodeName", node)


def test_a_change_that_takes_an_object_away_is_at_both_places() -> None:
    assert values_of(change_of(1, "n2", "n1"), "spec.nodeName") == {"n1", "n2"}
    assert values_of(change_of(1, "n2", "n2"), "spec.nodeName") == {"n2"}
    assert values_of(change_of(1, "n2"), "spec.nodeName") == {"n2"}
    assert values_of(change_of(1, "n2"), "status.phase") == {""}


def test_rows_of_the_history_end_with_it() -> None:
    history = History(2)
    first, second, third = change_of(1, "n1"), change_of(2, "n2", "n1"), change_of(3, "n3", "n2")
    history.add(first)
    assert history.since(0, on("n1")) == [first]
    history.add(second)
    assert (history.since(0, on("n1")), history.since(0, on("n2"))) == ([first, second], [second])
    history.add(third)
    assert (history.since(1, on("n1")), history.since(1, on("n2"))) == ([second], [second, third])
    assert history.since(2, on("n1")) == []
    assert history.since(1, on("n3", "x")) == [third]
    assert history.since(1, on("n3", "y")) == []
    assert history.compacted == 1
    history.add(change_of(4, "n3", "n3"))
    assert set(history._by_field["pods"]["spec.nodeName"]) == {"n2", "n3"}
    history.forget(4)
    assert not history._by_resource
    assert not history._by_field
    assert history.since(4) == history.since(4, on("n3")) == []
    history.add(change_of(5, "n3", resource="other"))
    assert history.since(4, on("n3")) == []


def test_an_index_forgets_values_that_nothing_has() -> None:
    objects: dict[Key, Object] = {}
    index, key = KeyIndex(objects), Key("pods", "x", "a")
    assert index.find(on("n1")) == []
    obj = change_of(1, "n1").object
    index.note(key, None, obj)
    objects[key] = obj
    assert index.find(on("n1")) == index.find(on("n1", "x")) == [key]
    assert index.find(on("n1", "y")) == index.find(on("n1"), ("x", "a")) == []
    index.note(key, obj, None)
    assert index.find(on("n1")) == []
    assert index._by_field["pods"]["spec.nodeName"] == {}
    assert index.last("pods", None) is index.last("pods", "x") is index.last("none", None) is None


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("", ("", "")),
        ("metadata.name!=a", ("", "")),
        ("status.phase=Running", ("status.phase", "Running")),
        ("status.phase==Running,spec.nodeName=n", ("spec.nodeName", "n")),
        ("spec.nodeName=n,metadata.name=a", ("metadata.name", "a")),
        ("spec.nodeName!=n,status.phase=Running", ("status.phase", "Running")),
        ("spec.nodeName=", ("spec.nodeName", "")),
    ],
)
def test_a_place_is_as_narrow_as_its_selector(selector: str, wanted: tuple[str, str]) -> None:
    assert required_value(selector) == wanted


LISTS: list[tuple[str, dict[str, str], list[str]]] = [
    ("/api/v1/pods", {"fieldSelector": "spec.nodeName=n1"}, ["a", "c", "a"]),
    (PODS, {"fieldSelector": "spec.nodeName=n1"}, ["a", "c"]),
    (PODS, {"fieldSelector": "spec.nodeName=n1,metadata.name!=a"}, ["c"]),
    (PODS, {"fieldSelector": "spec.nodeName=n1", "labelSelector": "x=c"}, ["c"]),
    (PODS, {"fieldSelector": "spec.nodeName="}, []),
    ("/api/v1/pods", {"fieldSelector": "metadata.name=a"}, ["a", "a"]),
    ("/api/v1/pods", {"fieldSelector": "metadata.name=a,metadata.namespace=other"}, ["a"]),
    (CONFIGMAPS, {"fieldSelector": "metadata.name=b"}, []),
]


@pytest.mark.virtual_time
@pytest.mark.parametrize(("path", "params", "wanted"), LISTS)
async def test_lists_are_of_their_place(
    path: str, params: dict[str, str], wanted: list[str]
) -> None:
    api = FakeApi()
    await create(api, "/api/v1/namespaces", {"metadata": {"name": "other"}})
    for space, name, node in (
        *(("default", "a", "n1"), ("default", "b", "n2"), ("default", "c", "n1")),
        ("other", "a", "n1"),
    ):
        body = pod(name, node=node)
        body["metadata"]["labels"] = {"x": name}
        await create(api, f"/api/v1/namespaces/{space}/pods", body)
    await create(api, CONFIGMAPS, configmap("a"))
    assert names(await get(api, path, **params)) == wanted
    shown = [
        event["object"]["metadata"]["name"]
        async for event in api.watch(path, params={**params, "timeoutSeconds": "1"})
    ]
    assert shown == wanted


@pytest.mark.virtual_time
async def test_a_part_of_a_list_goes_on_as_long_as_there_are_objects_of_others() -> None:
    """A kube-apiserver does not know either whether one of those behind is chosen."""
    api = FakeApi()
    for name, node in (("a", "n1"), ("b", "n2")):
        await create(api, PODS, pod(name, node=node))
    asked = {"fieldSelector": "spec.nodeName=n1", "limit": "1"}
    first = await get(api, PODS, **asked)
    assert names(first) == ["a"]
    rest = await get(api, PODS, **asked, **{"continue": first["metadata"]["continue"]})
    assert (names(rest), rest["metadata"].get("continue")) == ([], None)
    last = await get(api, PODS, fieldSelector="spec.nodeName=n2", limit="1")
    assert (names(last), last["metadata"].get("continue")) == (["b"], None)


def test_feeds_are_told_in_the_order_in_which_they_were_opened() -> None:
    store, woken = Store(), list[int]()

    class Told(Feed):
        def wake(self) -> None:
            woken.append(self.number)

    opened = [
        store.follow(place, 0)
        for place in (on("n2"), EVERYTHING, Place("pods", "x"), on("n1"), on("n1", "x"))
    ]
    for feed in opened:
        store._feeds._by_place[feed.place][feed.number] = Told(
            feed.number, feed.place, 0, lambda: 0, []
        )
    for node in ("n1", "n2"):
        obj = {"metadata": {"name": "a"}, "spec": {"nodeName": node}}
        store.put(Key("pods", "x", "a"), obj)
    assert woken == [2, 3, 4, 5, 1, 2, 3, 4, 5]
