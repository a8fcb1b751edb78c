"""Draws the pods of a world: entries of `pods` of a scenario."""

from __future__ import annotations

from collections.abc import Collection
from random import Random  # noqa: TID251 (for its type)
from typing import Any, Final

from kubelet_conformance.search.drawing.alone import ask_alone

POLICIES: Final = ("Always", "OnFailure", "Never")
TIMES_S: Final = (0.0, 0.5, 2.0, 3.0, 8.0, 30.0)
GRACES_S: Final = (0, 1, 2, 5, 30)
COMMANDS: Final = {"readinessProbe": "ready", "livenessProbe": "alive", "startupProbe": "begun"}
HOOKS: Final = {"postStart": "greet", "preStop": "goodbye"}
"""What probes and hooks execute, each its own: laws tell them by that."""
LONG_GRACES_S: Final = (60, 600)
LONG_HOOKS_S: Final = (40.0, 300.0)
PULLED: Final = "images.example/app:1"
"""An image that no node has."""
DRIVER: Final = "disks.example"
CLAIMS: Final = ("disk-a", "disk-b")
"""The claims of volumes of that driver."""
OBJECT: Final = "settings"
"""The ConfigMap that pods have as a volume."""


def draw_pod(dice: Random, kinds: Collection[str], *, static: bool) -> dict[str, Any]:
    """One pod, of these kinds."""
    if static:  # its removal, with its own grace period, must not take long
        kinds = [kind for kind in kinds if kind != "long hooks"]
    has_jobs = "jobs" in kinds and dice.random() < 0.6
    policy = dice.choice(POLICIES) if has_jobs or dice.random() < 0.2 else "Always"
    does: dict[str, Any] = {}
    spec: dict[str, Any] = {
        "restartPolicy": policy,
        "terminationGracePeriodSeconds": dice.choice(
            (*GRACES_S, *LONG_GRACES_S) if "long hooks" in kinds else GRACES_S
        ),
    }
    if "strangers" in kinds and not static and dice.random() < 0.4:
        spec["nodeSelector"] = {"no-node-has": "this-label"}
    names = ["main", "second", "third"][: dice.choice((1, 1, 1, 2, 3))]
    spec["containers"] = [_container(dice, kinds, name) for name in names]
    for name in names:
        does[name] = _runs(dice, kinds, job=has_jobs)
    first = _first(dice, kinds, does)
    if first:
        spec["initContainers"] = first
    if "deadlines" in kinds and not static and dice.random() < 0.4:
        spec["activeDeadlineSeconds"] = dice.choice((1, 5, 20, 60))
    if "volumes" in kinds and dice.random() < 0.6:
        _add_volume(dice, spec, static=static)
    if "csi volumes" in kinds and not static and dice.random() < 0.7:
        _add_driven_volume(dice, spec)
    if "own users" in kinds and dice.random() < 0.6:
        spec["hostUsers"] = False
    if "exclusive CPUs" in kinds and dice.random() < 0.7:
        _ask_for_cpus(dice, spec)
    ask_alone(dice, kinds, spec, static=static)
    _change_details(dice, kinds, spec)
    _answer_commands(dice, kinds, spec, does)
    return {"spec": spec, "does": does}


def _change_details(dice: Random, kinds: Collection[str], spec: dict[str, Any]) -> None:
    """Let resizes of CPUs restart containers, and probes begin late, or want several successes."""
    if "restarting resizes" in kinds and spec["restartPolicy"] != "Never":
        for one in spec["containers"]:
            if dice.random() < 0.6:
                restarts = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
                one["resizePolicy"] = [restarts]
    for one in (*spec["containers"], *spec.get("initContainers", ())):
        for probe in COMMANDS if "odd probes" in kinds else ():
            if probe in one:
                one[probe]["initialDelaySeconds"] = dice.choice((0, 2, 7))
        if "odd probes" in kinds and "readinessProbe" in one:
            one["readinessProbe"]["successThreshold"] = dice.choice((1, 2, 3))


def _container(dice: Random, kinds: Collection[str], name: str) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name}
    if "pulled images" in kinds and dice.random() < 0.3:
        made["image"] = PULLED
    if "probes" in kinds and dice.random() < 0.5:
        for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
            if dice.random() < 0.5:
                made[probe] = {
                    "exec": {"command": [COMMANDS[probe]]},
                    "periodSeconds": dice.choice((1, 2, 5)),
                    "failureThreshold": dice.choice((1, 3)),
                }
    if "hooks" in kinds and dice.random() < 0.5:
        hooks = {}
        for hook in ("postStart", "preStop"):
            if dice.random() < 0.6:
                hooks[hook] = {"exec": {"command": [HOOKS[hook]]}}
        if hooks:
            made["lifecycle"] = hooks
    if "amounts" in kinds and dice.random() < 0.7:
        large = ("2", "3") if "large amounts" in kinds else ()
        amounts = {"cpu": dice.choice(("10m", "100m", "1", *large)), "memory": "64Mi"}
        made["resources"] = {"requests": amounts}
        if dice.random() < 0.5:
            made["resources"]["limits"] = amounts
    return made


def _runs(dice: Random, kinds: Collection[str], *, job: bool) -> list[dict[str, Any]]:
    """What the runs of a container do; the last one goes on."""
    return [_run(dice, kinds, job=job) for _ in range(dice.choice((1, 1, 2, 3)))]


def _run(dice: Random, kinds: Collection[str], *, job: bool) -> dict[str, Any]:
    run: dict[str, Any] = {"stops": {"code": dice.choice((0, 143)), "after_s": 0.2}}
    if "stubborn" in kinds and dice.random() < 0.4:
        run = {"ignores": {"signal": "SIGTERM"}}
    if job and dice.random() < 0.7:
        run["exits"] = {"code": 0, "after_s": dice.choice(TIMES_S)}
    elif "crashes" in kinds and dice.random() < 0.5:
        run["exits"] = {"code": dice.choice((1, 2, 137)), "after_s": dice.choice(TIMES_S)}
    return run


def _first(dice: Random, kinds: Collection[str], does: dict[str, Any]) -> list[dict[str, Any]]:
    first: list[dict[str, Any]] = []
    if "init containers" in kinds and dice.random() < 0.6:
        for name in ("one", "two")[: dice.choice((1, 1, 2))]:
            first.append({"name": name})
            ends = {"exits": {"code": 0, "after_s": dice.choice(TIMES_S)}}
            fails = {"exits": {"code": 3, "after_s": dice.choice(TIMES_S)}}
            does[name] = [fails, ends] if dice.random() < 0.3 else [ends]
    if "sidecars" in kinds and dice.random() < 0.6:
        side = _container(dice, kinds, "side")
        first.insert(dice.randint(0, len(first)), {**side, "restartPolicy": "Always"})
        does["side"] = _runs(dice, kinds, job=False)
    return first


def _add_volume(dice: Random, spec: dict[str, Any], *, static: bool) -> None:
    """A volume of the pod: one of an object that may come late, or an empty directory."""
    kind: dict[str, Any] = {"emptyDir": {}}
    if not static and dice.random() < 0.6:
        kind = {"configMap": {"name": OBJECT}}
    spec["volumes"] = [{"name": "data", **kind}]
    spec["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]


def _add_driven_volume(dice: Random, spec: dict[str, Any]) -> None:
    """A volume of a storage driver: one that pods may share, or one that is the pod's alone."""
    kind: dict[str, Any] = {"csi": {"driver": DRIVER}}
    if dice.random() < 0.7:
        kind = {"persistentVolumeClaim": {"claimName": dice.choice(CLAIMS)}}
    spec["volumes"] = [*spec.get("volumes", ()), {"name": "disk", **kind}]
    for one in dice.sample(spec["containers"], dice.randint(1, len(spec["containers"]))):
        mounts = [*one.get("volumeMounts", ()), {"name": "disk", "mountPath": "/disk"}]
        one["volumeMounts"] = mounts


def _ask_for_cpus(dice: Random, spec: dict[str, Any]) -> None:
    """Let all containers have whole CPUs, so that they get them alone."""
    for one in (*spec["containers"], *spec.get("initContainers", ())):
        amounts = {"cpu": dice.choice(("1", "1", "2")), "memory": "64Mi"}
        one["resources"] = {"requests": amounts, "limits": amounts}


def _answer_commands(
    dice: Random, kinds: Collection[str], spec: dict[str, Any], does: dict[str, Any]
) -> None:
    """Let every run answer the commands of its probes and hooks: probes fail now and then, hooks
    take their time."""
    for one in (*spec["containers"], *spec.get("initContainers", ())):
        commands = []
        for probe, command in COMMANDS.items():
            if probe in one:
                codes = _codes(dice, kinds, probe)
                answers = [{"exit_code": code} for code in codes]
                commands.append({"command": command, "answers": answers})
        for hook in one.get("lifecycle") or ():
            times_s = (0.0, 0.7, 3.0, *(LONG_HOOKS_S if "long hooks" in kinds else ()))
            answer = {"exit_code": 0, "delay_s": dice.choice(times_s)}
            commands.append({"command": HOOKS[hook], "answers": [answer]})
        for run in does[one["name"]] if commands else ():
            run["replies"] = commands if len(commands) > 1 else commands[0]


def _codes(dice: Random, kinds: Collection[str], probe: str) -> list[int]:
    """The exit codes of a probe's command, one after the other; the last one stays."""
    codes = [dice.choice((0, 0, 0, 1)) for _ in range(dice.randint(0, 5))]
    if probe == "startupProbe" and "long starts" in kinds:
        codes = [1] * dice.randint(0, 8)
    never = "never well" in kinds and dice.random() < 0.4
    return [1] if never else [*codes, 0]
