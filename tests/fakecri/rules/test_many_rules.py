"""Rules are found by what they are about: a call does not look at those of others."""

from __future__ import annotations

import pytest
from kubecri.v1 import api_pb2 as pb

from fakecri import FakeCRI, exits
from fakecri.behaviors.matching import Match, Subject
from fakecri.rules.faults import Rule, RuleBook
from simclock import Rng

NAMES = ("", "a", "b", "uid-a", "a*", "?", "[ab]")


@pytest.mark.parametrize("seed", range(20))
def test_all_that_fit_are_found_in_their_order(seed: int) -> None:
    rng = Rng(seed).stream("rules")
    book = RuleBook()
    matches: dict[Rule, Match] = {}
    for _ in range(300):
        chosen = [rng.choice((None, *NAMES)) for _ in range(3)]
        match = Match(*chosen)
        method = rng.choice(("", "StartContainer"))
        rule = book.add(Rule(str(match), place=(method, *match.handle)))
        matches[rule] = match
        if rng.random() < 0.4:
            rng.choice(book).remove()
        subject = Subject(
            pod=rng.choice(("", "a", "b")),
            uid=rng.choice(("", "uid-a", "b")),
            container=rng.choice(("", "a", "b")),
            image=rng.choice(("", "a", "b")),
        )
        for method in ("", "StartContainer", "StopContainer"):
            fitting = [r for r in book if r.place[0] == method and matches[r].fits(subject)]
            assert [r for r in book.about(method, subject) if matches[r].fits(subject)] == fitting
            assert book.has_any(method) is any(r.place[0] == method for r in book)
    book.clear()
    assert not book.has_any("")
    assert book.about("", Subject()) == []


@pytest.mark.virtual_time
async def test_a_pod_with_a_rule_of_its_own_looks_at_that_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    def differences(match: Match, subject: Subject) -> list[str]:
        nonlocal looks
        looks += 1
        return real(match, subject)

    real = Match.differences
    monkeypatch.setattr(Match, "differences", differences)
    cri = FakeCRI()
    for number in range(100):
        cri.behaves(exits(0), pod=f"p{number}")
        cri.on("StartContainer", pod=f"p{number}").delays(0.0)
    for number in range(100):
        meta = pb.PodSandboxMetadata(name=f"p{number}", uid=f"u{number}", namespace="default")
        pod = pb.PodSandboxConfig(metadata=meta)
        made = await cri.call("RunPodSandbox", pb.RunPodSandboxRequest(config=pod))
        config = pb.ContainerConfig(
            metadata=pb.ContainerMetadata(name="main"),
            image=pb.ImageSpec(image="localhost/busybox:1"),
        )
        request = pb.CreateContainerRequest(
            pod_sandbox_id=made.pod_sandbox_id, config=config, sandbox_config=pod
        )
        created = await cri.call("CreateContainer", request)
        start = pb.StartContainerRequest(container_id=created.container_id)
        await cri.call("StartContainer", start)
    assert looks <= 3 * 100
