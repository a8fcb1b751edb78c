"""Cases of probes and slow syncs by lot, one for each seed, for any kubelet.

`CHAOS_SEEDS=1:100 kubelet-conformance run tests/chaos/between_case.py --kubelet PATH --time jump`
runs a hundred on a kubelet program; `python tests/chaos --between --seeds 1:2000` as many as you
like on refkubelet.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

sys.path[:0] = [str(Path(__file__).parent)]

from between_laws import POD, broken_laws  # noqa: E402 (they lie beside it)
from between_plan import BetweenPlan, Event, Slow, between_plan  # noqa: E402

from kubelet_conformance.harness.expect import expect_equal  # noqa: E402
from kubelet_conformance.harness.node import Node  # noqa: E402
from kubelet_conformance.harness.runs.case_run import Outcome  # noqa: E402
from kubelet_conformance.harness.runs.choice import Choice  # noqa: E402
from kubelet_conformance.harness.runs.seeds import seeds_of  # noqa: E402
from kubelet_conformance.harness.runs.virtual import run_virtual_case  # noqa: E402
from kubelet_conformance.registry import Case, CaseBody, Feature, Level, conformance  # noqa: E402

NEEDS: Final = (Feature.API, Feature.FAULTS, Feature.OUTSIDE_KILL, Feature.CGROUPS)
NEEDS_TIME: Final = (*NEEDS, Feature.VIRTUAL_TIME)
RULES: Final = ("PROBE-014.1", "PROBE-014.5", "STAT-012.1", "STAT-012.2")
QUIET_S: Final = 45.0  # after the last event
TITLE: Final = "No container is stopped for a probe that did not fail, whatever syncs take."


def body_of(seed: int, *, ids_compared: bool) -> CaseBody:
    """The body of the case of that seed. `ids_compared`: see `broken_laws`."""

    async def body(node: Node) -> None:
        plan = between_plan(seed)
        with ExitStack() as rules:
            for slow in plan.slow:
                rules.enter_context(_slowed(node, slow))
            await node.api.create_pod(plan.pod)
            for event in plan.events:
                await node.run_for(event.wait_s)
                await _happen(node, plan, event)
            await node.run_for(QUIET_S)
        await node.events_arrive()
        wrong = broken_laws(node, plan, ids_compared=ids_compared)
        expect_equal(node, wrong, [], "broken laws")

    body.__doc__ = TITLE
    body.__module__ = __name__
    return body


def _slowed(node: Node, slow: Slow):  # type: ignore[no-untyped-def]
    on = node.runtime.on(slow.method, container=slow.container)
    return (on.answers_late if slow.late else on.delays)(slow.takes_s, times=slow.times)


async def _happen(node: Node, plan: BetweenPlan, event: Event) -> None:
    try:
        if event.kind == "kill":
            await node.runtime.kill_container(event.container, pod=POD)
        elif event.kind == "resize":
            wanted = {"requests": {"cpu": event.cpu, "memory": "32Mi"}}
            await node.api.resize_pod(POD, event.container, wanted)
        else:
            await _change_image(node, event)
    except (RuntimeError, LookupError):
        return  # it does not run


async def _change_image(node: Node, event: Event) -> None:
    spec = (node.api.pod(POD) or {}).get("spec") or {}
    containers = [
        {**c, "image": event.image} if c["name"] == event.container else c
        for c in spec.get("containers", ())
    ]
    await node.api.patch_pod(POD, {"spec": {"containers": containers}})


def run_between(seed: int) -> list[str]:
    """Run the plan of that seed on refkubelet in virtual time, and return what was wrong."""
    case = Case(
        id=f"between-{seed}",
        area="chaos",
        title=TITLE,
        rules=RULES,
        level=Level.MUST,
        needs=frozenset(NEEDS_TIME),
        body=body_of(seed, ids_compared=True),
    )
    result = run_virtual_case(case, Choice(seed=seed))
    return [] if result.outcome is Outcome.PASSED else [result.detail]


for _seed in seeds_of(os.environ.get("CHAOS_SEEDS", "1:8")):
    conformance(id=f"between-{_seed}", rules=RULES, needs=NEEDS_TIME, since="1.34", area="chaos")(
        body_of(_seed, ids_compared=False)
    )
