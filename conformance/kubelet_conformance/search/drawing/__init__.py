"""Draws worlds from seeds: `world_of`. Pure: the same seed gives the same world, everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random  # noqa: TID251 (for its type)
from typing import Any, Final

from kubelet_conformance.search.drawing.alone import plug_in
from kubelet_conformance.search.drawing.faults import attach_all
from kubelet_conformance.search.drawing.kinds import BOUNDS, ONLY_API, ONLY_STATIC, Size, kinds_of
from kubelet_conformance.search.drawing.pods import CLAIMS, DRIVER, PULLED, draw_pod
from kubelet_conformance.search.drawing.steps import DRAWS, At, Cast, Step, draw_steps, settings
from kubelet_conformance.search.drawing.world import World
from simclock import Rng

CALM_S: Final = 600
"""So long after the last fault everything must be as it should be."""
NONE: Final[Mapping[str, float]] = {}


def world_of(seed: int, size: Size = "small", weights: Mapping[str, float] = NONE) -> World:
    """The world that is drawn from that seed. `weights`: factors on how often kinds (`KINDS`) are
    there."""
    dice = Rng(seed).stream(f"world {size}")
    kinds = kinds_of(dice, Rng(seed).stream(f"kinds later {size}"), weights)
    bounds = BOUNDS[size]
    keys = [f"p{number}" for number in range(dice.randint(*bounds.pods))]
    static = [key for key in keys if _is_static(dice.random(), kinds)]
    pods = {key: draw_pod(dice, kinds, static=key in static) for key in keys}
    cast = Cast(pods, static, "pulled images" in kinds, "no server" not in kinds)
    made = [(dice.choice((0.0, 0.0, 0.0, 2.0, 15.0)), _make(cast, key)) for key in keys]
    count = dice.randint(*bounds.steps)
    if "late objects" not in kinds:
        made.insert(0, (0.0, {"create_object": settings()}))
    else:
        made.append((dice.choice((3.0, 20.0)), {"create_object": settings()}))
    if not cast.of_api:
        made = [at for at in made if "create_object" not in at[1]]
    if "attachments" in kinds:
        made += attach_all(dice)
    if "devices" in kinds:
        made.insert(0, (0.0, plug_in()))
    happens = draw_steps(dice, _possible(kinds, cast), cast, count, bounds.longest_wait_s)
    document = {
        "id": f"world-{seed}",
        "title": f"World {seed}: {', '.join(kinds)}",
        "needs": list(_needs(kinds)),
        "kubelet": _configuration(kinds),
        "node": {},
        **_script(dice, kinds),
        **_drivers(dice, kinds),
        "pods": pods,
        "steps": list(_with_time(sorted([*made, *happens], key=lambda at: at[0]))),
        "calm": CALM_S,
    }
    return World(seed, kinds, document)


def _is_static(chance: float, kinds: Sequence[str]) -> bool:
    if "api pods" not in kinds:
        return True
    return "static pods" in kinds and chance < 0.5


def _possible(kinds: Sequence[str], cast: Cast) -> list[str]:
    """The kinds without those that are about pods of which there are none."""
    without = (frozenset() if cast.of_api else ONLY_API) | (
        frozenset() if cast.static else ONLY_STATIC
    )
    left = [kind for kind in kinds if kind not in without]
    return left if any(kind in DRAWS for kind in left) else [*left, "kubelet killed"]


def _make(cast: Cast, key: str) -> Step:
    return {"apply" if key in cast.static else "create": key}


def _needs(kinds: Sequence[str]) -> list[str]:
    needs = [] if "no server" in kinds else ["api"]
    if "shutdowns" in kinds:
        needs.append("shutdown")
    if "resizes" in kinds:
        needs.append("cgroups")
    if "own users" in kinds:
        needs.append("user_namespaces")
    if "exclusive CPUs" in kinds:
        needs.append("node_resources")
    return needs


def _configuration(kinds: Sequence[str]) -> dict[str, Any]:
    config: dict[str, Any] = {"evictionPressureTransitionPeriod": "30s"}
    if "evented" in kinds:
        config["featureGates"] = {"EventedPLEG": True}
    if "exclusive CPUs" in kinds:
        config |= {"cpuManagerPolicy": "static", "systemReserved": {"cpu": "500m"}}
    if "few pods" in kinds:
        config["maxPods"] = 2
    if "shutdowns" in kinds:
        config |= {"shutdownGracePeriod": "20s", "shutdownGracePeriodCriticalPods": "5s"}
    return config


def _script(dice: Random, kinds: Sequence[str]) -> dict[str, Any]:
    """What the runtime is told: of images that have to be pulled, how long that takes."""
    if "pulled images" not in kinds:
        return {}
    pull_s = dice.choice((0.5, 8.0, 25.0))
    return {"script": {"registry": {PULLED: {"pull_s": pull_s}}}}


def _drivers(dice: Random, kinds: Sequence[str]) -> dict[str, Any]:
    """The storage driver of the node, which stages or does not, and its volumes."""
    if "csi volumes" not in kinds:
        return {}
    stages = dice.choice((["STAGE_UNSTAGE_VOLUME"], ["STAGE_UNSTAGE_VOLUME"], []))
    attaches = {"spec": {"attachRequired": True}} if "attachments" in kinds else {}
    return {
        "csi_drivers": {DRIVER: {"capabilities": stages, **attaches}},
        "csi_volumes": {claim: {"driver": DRIVER} for claim in CLAIMS},
    }


def _with_time(steps: Sequence[At]) -> list[Step]:
    """The steps with the time that passes between them."""
    timed: list[Step] = []
    now_s = 0.0
    for at_s, step in steps:
        if at_s > now_s:
            timed.append({"advance": round(at_s - now_s, 3)})
        now_s = max(now_s, at_s)
        timed.append(step)
    return timed
