"""The end of a case: its pods are removed, and what has happened is told as a `History`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri

from fakecri.csi import CsiCall, FakeCsiDriver
from kubelet_conformance.harness.kubelets.base import KubeletDied
from kubelet_conformance.harness.node.parts import Parts
from kubelet_conformance.harness.node.watch import Watch
from kubelet_conformance.harness.observing.manifest_files import manifests_in
from kubelet_conformance.laws.history import History, Left, Shown, There

LOOK_S: Final = 1.0
GRACE_S: Final = 1
NOTHING: Final = Left(asked=True)


async def remove_pods(parts: Parts, watch: Watch) -> Left:
    """End all faults, remove all pods, as users do, and wait until nothing of them is left, within
    the `removal_s` of the pace. Nothing is asked where no kubelet runs at the end, or others share
    it."""
    if parts.tenant is not None or _is_stopped(watch):
        return Left()
    if await _left(parts, watch) == NOTHING:
        return NOTHING
    for rule in parts.runtime.target.rules():
        if hasattr(rule, "release"):
            rule.release()
    for file in _manifests(parts).rglob("*"):
        if file.is_file() or file.is_symlink():
            file.unlink()
    if parts.manifests is not None:
        parts.manifests.answers('{"apiVersion": "v1", "kind": "PodList", "items": []}')
    await _delete_at_api(parts)
    left = NOTHING
    until_s = watch.now_s + parts.pace.removal_s
    while watch.now_s < until_s:
        await parts.clock.sleep(LOOK_S, slack_s=LOOK_S)
        left = await _left(parts, watch)
        if left == NOTHING and not _staged(watch):
            break
    return left


def _manifests(parts: Parts) -> Path:
    """The directory of static pods; a relative one is below the file of the configuration."""
    return parts.paths.base / (parts.config.get("staticPodPath") or parts.paths.manifests)


def _staged(watch: Watch) -> bool:
    """Whether a driver that can be called has staged volumes: they are ended after their pods."""
    return any(driver.staged for driver in watch.drivers if not is_silent(watch, driver))


def is_silent(watch: Watch, driver: FakeCsiDriver) -> bool:
    """Whether a storage driver cannot be called, or calls of it fail."""
    return driver.is_down or driver.name not in watch.listening or any(driver.faults)


def _is_stopped(watch: Watch) -> bool:
    """Whether the case has stopped its kubelet for good."""
    last = [each.kind for each in watch.planned if each.kind in ("stop", "kill", "start")]
    return bool(last) and last[-1] != "start"


async def _delete_at_api(parts: Parts) -> None:
    if parts.api is None:
        return
    for pod in parts.api.pods().values():
        if pod["spec"].get("nodeName") == parts.node_name:
            path = (
                f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            )
            with suppress(RuntimeError):
                await parts.api.request("DELETE", path, body={"gracePeriodSeconds": GRACE_S})


async def _left(parts: Parts, watch: Watch) -> Left:
    listed: Any = await parts.runtime.direct.call("ListContainers", cri.ListContainersRequest())
    boxes: Any = await parts.runtime.direct.call("ListPodSandbox", cri.ListPodSandboxRequest())
    running = [
        f"{one.labels['io.kubernetes.pod.name']}/{one.metadata.name}"
        for one in listed.containers
        if one.state == cri.CONTAINER_RUNNING
    ]
    ready = [box.metadata.name for box in boxes.items if box.state == cri.SANDBOX_READY]
    pods = parts.paths.root / "pods"
    with suppress(KubeletDied):
        await watch.snapshots.refresh()
    at_api = watch.snapshots.api_pods.values() if parts.api is not None else ()
    return Left(
        asked=True,
        pods=tuple(watch.snapshots.pods),
        running=(*running, *ready),
        directories=tuple(sorted(p.name for p in pods.iterdir())) if pods.is_dir() else (),
        at_api=tuple(
            pod["metadata"]["name"]
            for pod in at_api
            if pod["spec"].get("nodeName") == parts.node_name
        ),
    )


async def there_on(parts: Parts, watch: Watch, static: Collection[str]) -> There:
    """What runtime, kubelet and API server have of pods now. `static`: names of the pods of which
    the case has written manifests."""
    direct = parts.runtime.direct
    containers: Any = await direct.call("ListContainers", cri.ListContainersRequest())
    statuses = []
    for one in containers.containers:
        request = cri.ContainerStatusRequest(container_id=one.id)
        statuses.append((await direct.call("ContainerStatus", request)).status)
    boxes: Any = await direct.call("ListPodSandbox", cri.ListPodSandboxRequest())
    await watch.snapshots.refresh()
    at_api = watch.snapshots.api_pods if parts.api is not None else {}
    return There(
        containers=statuses,
        sandboxes=list(boxes.items),
        listed=dict(watch.snapshots.pods),
        at_api={
            name: pod
            for name, pod in at_api.items()
            if pod["spec"].get("nodeName") == parts.node_name
        },
        manifests=manifests_in(_manifests(parts), static),
        configmaps=frozenset(parts.api.names("configmaps") if parts.api is not None else ()),
    )


def history_of(
    parts: Parts,
    watch: Watch,
    *,
    end_s: float,
    stored: Mapping[str, Any],
    left: Left,
    there: There | None = None,
) -> History:
    """What has happened on the node up to now."""
    requests = parts.api.fake.requests() if parts.api is not None else []
    by_users = parts.api.by_users if parts.api is not None else set()
    users_requests = [one for one in requests if one.seq in by_users]
    now_ns, now_s = parts.clock.wall_ns(), parts.clock.monotonic_s()
    return History(
        start_s=watch.start_s,
        end_s=end_s,
        start_ns=now_ns - int((now_s - watch.start_s) * 1e9),
        node_name=parts.node_name,
        config=parts.config,
        calls=parts.runtime.calls(None, None, None),
        requests=[one for one in requests if one.seq not in by_users],
        by_users=users_requests,
        shown=_of_the_kubelet(watch.snapshots.history, users_requests),
        pods=watch.snapshots.given,
        events=watch.snapshots.events,
        stored=stored,
        driver_calls=_driver_calls(watch),
        silent_drivers=frozenset(d.name for d in watch.drivers if is_silent(watch, d)),
        log=parts.kubelet.log_lines(),
        planned=watch.planned,
        there=there,
        left=left,
    )


def _driver_calls(watch: Watch) -> Mapping[str, Sequence[CsiCall]]:
    calls: dict[str, list[CsiCall]] = {}
    for driver in watch.drivers:
        calls.setdefault(driver.name, []).extend(driver.calls)
    return {name: sorted(each, key=lambda call: call.started_s) for name, each in calls.items()}


def _of_the_kubelet(shown: Sequence[Shown], by_users: Sequence[Any]) -> list[Shown]:
    """The statuses that a kubelet has made: of a pod whose status somebody else has written, those
    before that (MIRR-035)."""
    written_s: dict[str, float] = {}
    for one in by_users:
        path = one.path.removesuffix("/status")
        if path != one.path and "/pods/" in path:
            written_s.setdefault(path.rpartition("/")[2], one.started_s)
    return [one for one in shown if one.at_s < written_s.get(one.pod, inf)]
