"""Where a call takes a short way, it gives what it gives on the long one."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubecri.v1 import api_pb2 as cri
from runtime_calls import container_config, pod_config

from fakecri import CriError, FakeCRI, exits, ignores, start_hangs, stops
from fakecri.core.image_store.images import ImageStore
from fakecri.core.requests import require_short_labels
from fakecri.cri.services import METHODS
from fakecri.proxy import RecordingProxy
from simclock import run_virtual

KINDS = ("plain", "slow", "deaf", "short", "hangs")
METHODS_ASKED = ("start", "stop", "remove", "stop box", "remove box", "create", "run", "status")
STEPS = st.lists(st.tuples(st.sampled_from(METHODS_ASKED), st.integers(0, 9)), max_size=25)


def fake_with(*, rules: bool) -> FakeCRI:
    """A fake whose containers end in different ways. `rules`: every method has a rule on a pod that
    there is not, so that no call is answered at once."""
    fake = FakeCRI()
    fake.behaves(stops(after_s=2), container="slow")
    fake.behaves(ignores(), container="deaf")
    fake.behaves(exits(3, after_s=1), container="short")
    fake.behaves(start_hangs(2), container="hangs")
    for method in METHODS if rules else ():
        if not METHODS[method].streams:
            fake.on(method, pod="nobody").fails("UNKNOWN", "never")
    return fake


class Caller:
    """Makes the same calls to any target; remembers what came."""

    def __init__(self, target: Any, fake: FakeCRI) -> None:
        self.target = target
        self.fake = fake
        self.pods = 0
        self.answers: list[object] = []

    async def do(self, what: str, which: int) -> None:
        boxes, runs = list(self.fake.core.sandboxes), list(self.fake.core.containers)
        box = boxes[which % len(boxes)] if boxes else "none"
        run = runs[which % len(runs)] if runs else "none"
        requests = {
            "run": ("RunPodSandbox", {"config": self.config(which)}),
            "create": ("CreateContainer", self.creation(box, which)),
            "start": ("StartContainer", {"container_id": run}),
            "stop": ("StopContainer", {"container_id": run, "timeout": which % 5}),
            "remove": ("RemoveContainer", {"container_id": run}),
            "stop box": ("StopPodSandbox", {"pod_sandbox_id": box}),
            "remove box": ("RemovePodSandbox", {"pod_sandbox_id": box}),
            "status": ("ContainerStatus", {"container_id": run}),
        }
        method, fields = requests[what]
        request = METHODS[method].request_type(**fields)
        try:
            answer = await self.target.call(method, request, timeout_s=float(1 + which % 4))
        except grpc.RpcError as error:
            self.answers.append((error.code(), error.details()))
        else:
            self.answers.append(answer)

    def config(self, which: int) -> cri.PodSandboxConfig:
        self.pods += which % 3 > 0  # else the name may be taken
        return pod_config(f"p{self.pods}")

    def creation(self, box: str, which: int) -> dict[str, Any]:
        config = container_config(KINDS[which % len(KINDS)], which)
        return {"pod_sandbox_id": box, "config": config, "sandbox_config": pod_config("p1")}


async def told_of(caller: Caller, steps: list[tuple[str, int]]) -> tuple[object, ...]:
    started_s = caller.fake.clock.monotonic_s()
    for what, which in steps:
        await caller.do(what, which)
    took_s = caller.fake.clock.monotonic_s() - started_s
    return caller.answers, caller.target.recorder.to_jsonl(t0_s=started_s), round(took_s, 6)


BEGIN = [("run", 1), *(("create", n) for n in range(5)), *(("start", n) for n in range(4))]


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_calls_give_the_same_with_rules_on_others_and_without(steps: list[tuple[str, int]]) -> None:
    async def one(*, rules: bool) -> tuple[object, ...]:
        fake = fake_with(rules=rules)
        return await told_of(Caller(fake, fake), [*BEGIN, *steps])

    assert run_virtual(lambda: one(rules=False)) == run_virtual(lambda: one(rules=True))


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_a_proxy_in_front_knows_of_calls_what_the_fake_knows(steps: list[tuple[str, int]]) -> None:
    async def main() -> None:
        fake = fake_with(rules=False)
        proxy = RecordingProxy(fake, clock=fake.clock)
        await told_of(Caller(proxy, fake), [*BEGIN, *steps])
        for own, passed in zip(fake.calls(), proxy.calls(), strict=True):
            assert (own.method, own.subject) == (passed.method, passed.subject)
            assert (own.request, own.response) == (passed.request, passed.response)

    run_virtual(main)


NAMES = st.sampled_from(["busybox", "busybox:1", "a.b/c:2", "localhost/x", "docker.io/library/y"])


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_an_image_is_found_by_each_of_its_names(names: list[str]) -> None:
    store = ImageStore()
    for name in names:
        store.add(name)
    for image in store.images.values():
        for name in (*image.tags, *image.digests, image.id, image.id.removeprefix("sha256:")[:30]):
            assert store.find(name) is image
    for name in names:
        assert store.find(name) is not None
    assert store.find("localhost/other") is None
    assert store.find("not a name/") is None


@given(st.integers(900, 4200), st.sampled_from(["a", "é", "語", "🎈"]), st.integers(0, 40))
def test_labels_are_measured_in_bytes(size: int, letter: str, length: int) -> None:
    key, value = "k" * length, letter * (size // len(letter.encode()))
    config = container_config("web")
    config.labels[key] = value
    too_long = len(key.encode()) + len(value.encode()) > 4096
    if not too_long:
        require_short_labels(config.labels)
        return
    with pytest.raises(CriError, match="greater than maximum size"):
        require_short_labels(config.labels)
