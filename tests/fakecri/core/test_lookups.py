"""Tables that are asked all the time: they find what a look at everything finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as pb

from fakecri.core.image_store.images import Image, ImageStore
from fakecri.core.lookups.listed import POD_UID, ListedTable
from fakecri.core.lookups.named import NamedTable
from simclock import Rng


@dataclass(frozen=True, slots=True)
class Thing:
    config: Any


@pytest.mark.parametrize("seed", range(10))
def test_what_is_of_a_pod_is_found_in_order(seed: int) -> None:
    rng = Rng(seed).stream("things")
    table: ListedTable[Thing] = ListedTable()
    for number in range(200):
        labels = {} if rng.random() < 0.2 else {POD_UID: rng.choice("abc")}
        table[f"{number:04}"] = Thing(pb.ContainerConfig(labels=labels))
        if rng.random() < 0.4:
            del table[rng.choice(list(table))]
        for wanted in ({}, {POD_UID: "a"}, {POD_UID: "none"}, {POD_UID: "b", "other": "x"}):
            uid = wanted.get(POD_UID)
            every = [t for t in table.values() if uid in (None, t.config.labels.get(POD_UID))]
            assert list(table.labelled(wanted)) == every
    copy = ListedTable(table.items())
    assert list(copy.labelled({POD_UID: "a"})) == list(table.labelled({POD_UID: "a"}))
    table.clear()
    assert list(table.labelled({POD_UID: "a"})) == []


@pytest.mark.parametrize("seed", range(10))
def test_images_are_found_by_all_of_their_names(seed: int) -> None:
    rng = Rng(seed).stream("images")
    table: NamedTable[Image] = NamedTable()
    for _ in range(200):
        key, names = rng.choice("abcdef"), ("x", "y", "z")
        tags = tuple(n for n in names if rng.random() < 0.3)
        digests = tuple(n for n in names if rng.random() < 0.3)
        table[key] = Image(key, tags=tags, digests=digests)
        if rng.random() < 0.3:
            del table[rng.choice(list(table))]
        for name in (*names, "none"):
            every = [i for i in table.values() if name in i.tags or name in i.digests]
            assert table.named(name) == every
    table.clear()
    assert table.named("x") == []


def test_an_image_is_found_by_the_beginning_of_its_id() -> None:
    store = ImageStore()
    images = [store.add(f"localhost/i{n}:1") for n in range(40)]
    for image in images:
        digits = image.id.removeprefix("sha256:")
        for length in range(65):
            short = digits[:length]
            same = [i for i in images if short and i.id.removeprefix("sha256:").startswith(short)]
            found = same[0] if len(same) == 1 else None
            assert store.find(short) is found
            assert store.find(f"sha256:{short}") is found
    for text in ("", "s", "sha256", "sha256:", "zz"):
        assert store.find(text) is None
