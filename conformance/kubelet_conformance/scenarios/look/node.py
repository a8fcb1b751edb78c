"""Looks at the node itself: what the runtime has, files, cgroups, statistics, the shutdown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from msgspec import UNSET

from kubelet_conformance.harness.kubelets.base import KubeletDied
from kubelet_conformance.scenarios.look.view import Look, View, count_fits, listed
from kubelet_conformance.scenarios.shape.conditions import (
    Cgroup,
    Containers,
    Files,
    Images,
    Sandboxes,
    Shutdown,
    Stats,
)
from kubelet_conformance.scenarios.shape.plugged import RootShown
from kubelet_conformance.scenarios.shape.ranges import is_in, text_fits

_STATES: Final = {
    cri.CONTAINER_CREATED: "created",
    cri.CONTAINER_RUNNING: "running",
    cri.CONTAINER_EXITED: "exited",
    cri.CONTAINER_UNKNOWN: "unknown",
}


async def containers(view: View, what: Containers) -> Look:
    """So many containers in the runtime."""
    of_pod = await view.containers(what.pod, what.name)
    fitting = [
        container
        for container in of_pod
        if what.state in (UNSET, _STATES[container.state])
        and what.attempt in (UNSET, container.metadata.attempt)
    ]
    words = [f"{c.metadata.name}/{c.metadata.attempt} {_STATES[c.state]}" for c in of_pod]
    return Look(count_fits(what.count, len(fitting)), f"{len(fitting)} of {listed(words)}")


async def sandboxes(view: View, what: Sandboxes) -> Look:
    """So many sandboxes in the runtime."""
    of_pod = await view.sandboxes(what.pod)
    fitting = [
        box
        for box in of_pod
        if what.state in (UNSET, _ready(box)) and what.attempt in (UNSET, box.metadata.attempt)
    ]
    words = [f"{box.metadata.name}/{box.metadata.attempt} {_ready(box)}" for box in of_pod]
    return Look(count_fits(what.count, len(fitting)), f"{len(fitting)} of {listed(words)}")


def _ready(sandbox: Any) -> str:
    return "ready" if sandbox.state == cri.SANDBOX_READY else "notready"


async def images(view: View, what: Images) -> Look:
    """So many images in the runtime."""
    tags = [tag for image in await view.images() for tag in image.repo_tags]
    fitting = [tag for tag in tags if what.name.fits(tag)]
    return Look(count_fits(what.count, len(fitting)), f"{len(fitting)} of {listed(tags)}")


def files(view: View, what: Files) -> Look:
    """So many files."""
    top = view.node.machine.directory(what.at)
    pattern = path_of(view, what)
    if pattern is None:
        return Look(False, f"the UID of pod {what.pod} is not known")
    paths = sorted(top.glob(pattern))
    texts = {path: _text(path) for path in paths}
    fitting = [path for path in paths if what.text is UNSET or what.text.fits(texts[path])]
    words = [str(path.relative_to(top)) for path in paths]
    if what.text is not UNSET:
        words = [f"{path.name}: {texts[path][:200]!r}" for path in paths]
    return Look(count_fits(what.count, len(fitting)), f"{len(fitting)} of {listed(words)}")


def path_of(view: View, what: Any) -> str | None:
    """The path with the pod's UID and name; None while the UID is not known."""
    path: str = what.path
    if what.pod is UNSET:
        return path
    path = path.replace("{name}", view.runtime_name(what.pod))
    if "{uid}" not in path:
        return path
    calls = view.node.calls("RunPodSandbox", pod=view.name(what.pod))
    api_pod = view.node.pod(view.name(what.pod))
    uid = api_pod["metadata"]["uid"] if api_pod else str(calls[-1].uid) if calls else None
    return None if uid is None else path.replace("{uid}", uid)


def root(view: View, what: RootShown) -> Look:
    """The root directory, or what is below it."""
    path = view.node.machine.directory("root")
    if what.path is not UNSET:
        below = path_of(view, what)
        if below is None:
            return Look(False, f"the UID of pod {what.pod} is not known")
        path = path / below
    kind = _kind(path)
    if not kind or not what.there:
        return Look(bool(kind) is what.there, f"a {kind} is there" if kind else "nothing is there")
    names = sorted(os.listdir(path)) if kind == "directory" else []
    text = _text(path) if kind == "file" else ""
    fits = [
        what.kind in (UNSET, kind),
        what.text is UNSET or (kind == "file" and what.text.fits(text)),
        what.entries is UNSET
        or all(any(text_fits(name, wanted) for name in names) for wanted in what.entries),
        what.no_entries is UNSET or (kind == "directory" and not _any_fits(names, what.no_entries)),
    ]
    words = f"a {kind}" + (f" with {listed(names)}" if kind == "directory" else "")
    return Look(all(fits), words + (f": {text[:200]!r}" if kind == "file" else ""))


def _any_fits(names: list[str], patterns: tuple[str, ...]) -> bool:
    return any(text_fits(name, pattern) for name in names for pattern in patterns)


def _kind(path: Path) -> str:
    """What is there; "": nothing."""
    if path.is_symlink():
        return "link"
    if path.is_socket():
        return "socket"
    if path.is_dir():
        return "directory"
    return "file" if path.exists() else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def cgroup(view: View, what: Cgroup) -> Look:
    """A cgroup and its limits."""
    groups = view.node.cgroups
    if what.pod is UNSET:
        words = () if what.path is UNSET else what.path
    elif view.node.pod(view.name(what.pod)) is None:
        return Look(not what.there, "the pod is not in /pods")
    else:
        words = groups.of_pod(view.name(what.pod))
    if not what.there or not groups.exists(*words):
        presence = (
            "gone" if groups.is_gone(*words) else "there" if groups.exists(*words) else "half gone"
        )
        return Look(not what.there and presence == "gone", f"{'/'.join(words)} is {presence}")
    reads: dict[str, Any] = {
        "cpu": groups.cpu,
        "cpu_quota_us": groups.cpu_quota_us,
        "memory_limit": groups.memory_limit_bytes,
        "pids_limit": groups.pids_limit,
        "cpus": groups.cpus,
    }
    limits = {name: getattr(what, name) for name in reads if getattr(what, name) is not UNSET}
    try:
        seen_of = {name: reads[name](*words) for name in limits}
    except OSError as error:
        return Look(False, f"{'/'.join(words)}: {error}")
    fits = [_limit_fits(limits[name], seen_of[name]) for name in limits]
    limit_words = ", ".join(f"{name} {value}" for name, value in seen_of.items())
    return Look(all(fits), f"{'/'.join(words)}: {limit_words or 'it is there'}")


def _limit_fits(wanted: Any, seen: Any) -> bool:
    """No limit at all is a very great one."""
    if hasattr(wanted, "holds"):
        return bool(wanted.holds(float("inf") if seen is None else seen))
    return bool(seen == wanted)


async def stats(view: View, what: Stats) -> Look:
    """The statistics."""
    try:
        summary = await view.node.kubelet.summary()
    except (KubeletDied, RuntimeError) as error:
        return Look(False, str(error))
    return Look(is_in(what.has, summary), str(summary)[:600])


def shutdown(view: View, what: Shutdown) -> Look:
    """Whether the kubelet holds up the shutdown."""
    is_held_up = bool(view.node.machine.holds_up_shutdown)
    return Look(is_held_up is what.held_up, f"held up: {str(is_held_up).lower()}")
