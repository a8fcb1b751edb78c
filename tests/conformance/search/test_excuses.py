"""Excuses: each holds for its law, its worlds and its pods, and for no others."""

from __future__ import annotations

from typing import Any

import pytest

from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.search.drawing import world_of
from kubelet_conformance.search.drawing.pods import PULLED
from kubelet_conformance.search.drawing.world import World
from kubelet_conformance.search.excuses import EXCUSES, excuse_of
from kubelet_conformance.search.playing import Breach, verdict_of

KUBELET = "/usr/bin/kubelet"
INIT = [{"name": "first"}]
SIDECAR = [{"name": "side", "restartPolicy": "Always"}]
HOOK = {"containers": [{"name": "main", "lifecycle": {"preStop": {}}}]}
PROBED = {"containers": [{"name": "main", "startupProbe": {}}]}
PLAIN = {"containers": [{"name": "main", "image": "x"}]}
PULLS = {"containers": [{"name": "main", "image": PULLED}]}
NEVER = {**PLAIN, "restartPolicy": "Never"}
EDITED = {"edit": {"pod": "p", "set": {"spec": PULLS}}}
WAITS = "pod p is Pending, main does not run: ContainerCreating"
EVENTED = {"featureGates": {"EventedPLEG": True}}


def excused(law: str, what: str, *steps: Any, **world: Any) -> str | None:
    """The name of the excuse on a kubelet, in a world with a pod p of that spec and a plain q."""
    pods = {"p": {"spec": world.pop("spec", PLAIN), "does": world.pop("does", {})}}
    document = {"pods": {**pods, "q": {"spec": PLAIN}}, "steps": list(steps), **world}
    excuse = excuse_of(World(1, (), document), Breach(law, what), kubelet=KUBELET)
    return None if excuse is None else excuse.name


@pytest.mark.parametrize(
    ("name", "law", "what", "spec", "steps"),
    [
        ("116032, 127339", "stopped-in-time", "p/main is not stopped", HOOK, []),
        ("125050", "nothing-begun-at-the-end", "StartContainer p/main at 9 s", PULLS, []),
        ("125050", "nothing-begun-at-the-end", "StartContainer p/main at 9 s", PLAIN, [EDITED]),
        ("125050", "nothing-begun-at-the-end",
         "StartContainer p/main: it was deleted, while StopContainer of its pod is under way",
         PLAIN, []),
        ("140309", "init-in-order", "p-node/main is made", {"initContainers": INIT},
         [{"reboot": True}]),
        ("137710", "initialized-again", "p-node/main is made at 17 s, before two was started",
         {"initContainers": [*INIT, {"name": "two"}]},
         [{"fault": {"on": "RemoveContainer", "fails": {}}}]),
        ("141155", "startup-first", "p/main meets its livenessProbe", PROBED, []),
        ("51142", "done-stays-done", "p/main is made again", PLAIN, [{"drop": {"pod": "p"}}]),
        ("118321", "wanted-pods-go-on", f"{WAITS}, its sandbox was lost", NEVER, []),
        ("118321", "wanted-pods-go-on", WAITS, NEVER, [{"drop": "p"}]),
        ("118321", "wanted-pods-go-on",
         "pod p: two waits: PodInitializing, its sandbox was lost", NEVER, []),
        ("deadline-shown-ready", "ready-when-probed", "p/main is ready",
         {"activeDeadlineSeconds": 5}, []),
        ("deletion-shown-ready", "ready-when-probed", "p/main is ready", PLAIN,
         [{"delete": "p"}, {"kubelet": "kill"}]),
        ("deletion-shown-ready", "ready-when-probed", "p/main is ready", PLAIN,
         [{"dies_at": {}}, {"delete": {"pod": "p"}}]),
    ],
)  # fmt: skip
def test_an_excuse_holds_for_its_pods_alone(
    name: str, law: str, what: str, spec: Any, steps: list[Any]
) -> None:
    assert excused(law, what, *steps, spec=spec) == name
    if "under way" in what:
        return  # whatever its pod has
    other = what.replace("p/", "q/").replace("p-node", "q-node").replace("pod p", "pod q")
    assert excused(law, other, *steps, spec=spec) is None


def test_an_excuse_wants_what_it_is_about_to_be_told() -> None:
    shown = "p/main is still shown to run at 9 s"
    assert excused("ends-shown", f"{shown}, while PullImage of its pod is under way") == "91667"
    assert excused("ends-shown", shown) is None
    noticed = "p/main has ended at 9 s, which is noticed at 300 s"
    failed = f"{noticed}: a list had failed at 8 s"
    assert excused("ends-noticed", failed, kubelet=EVENTED) == "evented-list-fails"
    assert excused("ends-noticed", noticed, kubelet=EVENTED) is None
    assert excused("ends-noticed", failed, kubelet={}) is None
    assert excused("wanted-pods-go-on", WAITS, spec=NEVER) is None
    init = "pod p: two waits: PodInitializing"
    assert excused("wanted-pods-go-on", init, spec=NEVER) is None
    lost = f"{init}, its sandbox was lost"
    assert excused("wanted-pods-go-on", lost, spec=PLAIN) is None
    side = {**NEVER, "initContainers": SIDECAR}
    ended = "pod p: main has ended, and is not started again"
    crashes = {"side": [{"exits": 1}]}
    assert excused("wanted-pods-go-on", ended, spec=side, does=crashes) == "136969"
    assert excused("wanted-pods-go-on", ended, spec=side) is None
    probed = {**NEVER, "initContainers": [{**SIDECAR[0], "startupProbe": {}}]}
    assert excused("wanted-pods-go-on", ended, spec=probed) == "136969"
    shown = "p is Running at 9 s, and its containers wait for init containers"
    assert excused("running-is-initialized", shown, spec=side, does=crashes) is None


def test_init_containers_of_an_old_sandbox_are_an_excuse_where_they_cannot_be_removed() -> None:
    early = ("initialized-again", "p/main is made at 17 s, before two was started")
    two = {**PLAIN, "initContainers": [*INIT, {"name": "two"}]}
    for step in ({"fault": {"on": "RemoveContainer"}}, {"runtime": "crash"}):
        assert excused(*early, step, spec=two) == "137710"
    one = {**PLAIN, "initContainers": INIT}
    assert excused(*early, {"fault": {"on": "RemoveContainer"}}, spec=one) is None
    assert excused(*early, {"fault": {"on": "StopContainer"}}, spec=two) is None


def test_a_static_pod_has_its_place_unless_it_comes_back() -> None:
    many = ("no-more-than-fits", "3 pods run, and the node may have 2")
    gone, back = {"remove": "p"}, {"apply": "p"}
    away = {"rename_file": {"file": "p.yaml", "to": "q.yaml"}}
    again = {"rename_file": {"file": "q.yaml", "to": "p.yaml"}}
    assert excused(*many, back, gone, back) == "static-back-unadmitted"
    assert excused(*many, back, away, again) == "static-back-unadmitted"
    assert excused(*many, back, gone) is None
    assert excused(*many, back, away, away) is None
    assert excused(*many, gone, {"apply": "q"}) is None


def test_an_excuse_holds_for_its_law_and_its_worlds_alone() -> None:
    (excuse,) = (one for one in EXCUSES if one.name == "112814")
    changed = [{"apply": "a"}, {"kubelet": "kill"}, {"edit": {"pod": "a", "set": {}}}]
    dies = [{"dies_at": {"on": "StopContainer"}}, {"apply": "a"}]
    worlds = {
        "excused": World(1, (), {"steps": changed}),
        "dies": World(1, (), {"steps": [*dies, changed[-1]]}),
        "not changed": World(1, (), {"steps": dies}),
        "not": World(1, (), {"steps": [{"apply": "a"}, {"edit": {"pod": "a", "set": {}}}]}),
    }

    def excused(world: str, law: str) -> object:
        return excuse_of(worlds[world], Breach(law, ""), kubelet="refkubelet")

    assert excused("excused", "one-static") is excuse
    assert excused("excused", "one-running") is None
    assert excused("dies", "one-static") is excuse
    assert excused("not changed", "one-static") is None
    assert excused("not", "one-static") is None


def test_what_refkubelet_does_not_do_is_not_excused_there() -> None:
    pod = {"spec": {"restartPolicy": "OnFailure"}}
    world = World(1, (), {"pods": {"p": pod}, "steps": [{"apply": "p"}, {"remove": "p"}]})
    breach = Breach("told-as-it-is", "p-node/main is shown as terminated, the runtime has running")
    for kubelet in ("refkubelet", "refkubelet-process"):
        assert excuse_of(world, breach, kubelet=kubelet) is None
    excuse = excuse_of(world, breach, kubelet="/usr/bin/kubelet")
    assert excuse is not None
    assert excuse.name == "static-shown-ended"
    other = Breach("told-as-it-is", "q-node/main is shown as terminated, the runtime has running")
    assert excuse_of(world, other, kubelet="/usr/bin/kubelet") is None


def test_a_panic_is_told_and_known_where_pods_want_devices() -> None:
    detail = [
        *("expected: a running kubelet", "seen:     the kubelet ended with exit code 2:"),
        *("  panic: assignment to entry in nil map [recovered, repanicked]", "  goroutine 5:"),
    ]
    case = world_of(3).case()
    (breach,) = verdict_of(1, Result(case, Outcome.FAILED, "\n".join(detail))).breaches
    assert breach.law == "kubelet-lives"
    assert breach.what.endswith(f"code 2: {detail[2].strip()}")
    for kinds, name in ((("devices",), "136021"), (("probes",), None)):
        excuse = excuse_of(World(1, kinds, {"steps": []}), breach, kubelet=KUBELET)
        assert (excuse.name if excuse else None) == name
