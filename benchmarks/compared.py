"""Workloads that two states of the project are compared by; `side_by_side` measures them.

    python -P compared.py TREE NAME [--few]

runs one with the packages and benchmarks of the tree that PYTHONPATH names, in forked processes
with fewer and with more rounds, and prints a line of JSON for each: what the rounds cost is the
difference. What happens in a round is the code of the tree's own benchmarks where it can be, so
that states whose classes differ can be compared, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

EARLIER: Final = {"fakekubeapi": "fakeapi", "kubelet_conformance": "conformance"}
"""What packages were called in states that are still compared with."""
PACKAGES: Final = frozenset(
    ("simclock", "kubeobjects", "fakecri", "refkubelet", "kubecri", *EARLIER, *EARLIER.values())
)
PODS: Final = 110
IDLE_PODS: Final = 60
API_PODS: Final = "/api/v1/namespaces/default/pods"
CASES: Final = (
    *("readiness-gate", "transition-times-stay", "foreign-condition-kept", "observed-generation"),
    *("deleted-before-init", "sandbox-lost-conditions", "lease-content", "lease-renewed"),
)
"""Of the area status; their IDs stay."""


@dataclass(frozen=True, slots=True)
class Workload:
    """`run` does so many rounds. `fewer`: the rounds whose cost is subtracted; `more`, and `few` in
    a quick run: those that are left then. `warm`: the process has done a round before."""

    what: str
    run: Callable[[int], object]
    more: int
    few: int
    fewer: int = 0
    warm: bool = True


def package(name: str) -> Any:
    """A package of the tree, which may have it under an earlier name."""
    tree = Path(sys.argv[1])
    there = any((tree / folder / name).is_dir() for folder in ("", "conformance"))
    return import_module(name if there else EARLIER[name])


def crash_loops(rounds: int) -> None:
    once = import_module("crash_loop").once
    for _ in range(rounds):
        once()


def pods_to_running(rounds: int) -> None:
    starts, in_fresh_directory = import_module("pod_starts"), _in_fresh_directory()
    for _ in range(rounds):
        in_fresh_directory(_manifests(PODS), lambda directory: starts.start_all(directory, PODS))


def idle_minutes(rounds: int) -> None:
    """Virtual minutes with pods that run, after the minute in which they start."""
    loop = import_module("crash_loop")

    async def idle(directory: Path) -> Any:
        node = loop.FakeNode()

        async def the_end(_: Any) -> str:
            await asyncio.sleep(60.0 * (1 + rounds))
            return ""

        return await loop.measured(directory, loop.FakeCRI(node=node), node, the_end)

    _in_fresh_directory()(_manifests(IDLE_PODS), idle)


def _in_fresh_directory() -> Callable[..., Any]:
    made: Callable[..., Any] = import_module("crash_loop").in_fresh_directory
    return made


def _manifests(pods: int) -> dict[str, str]:
    manifest = import_module("pod_starts").MANIFEST
    return {f"pod-{n}.yaml": manifest.format(number=n) for n in range(pods)}


def lives_of_pods(rounds: int) -> None:
    calls = import_module("cri_calls")

    async def lives() -> None:
        cri = calls.FakeCRI()
        for number in range(rounds):
            await calls.cycle(cri, number)

    calls.run_virtual(lives)


def first_relists(rounds: int) -> None:
    _relists(1, rounds)


def unchanged_relists(rounds: int) -> None:
    _relists(rounds, 1)


def _relists(each: int, kubelets: int) -> None:
    """Kubelets that find `PODS` pods of two containers, and relist so often."""
    relist = import_module("relist")

    async def relists() -> None:
        cri = relist.FakeCRI()
        for number in range(PODS):
            sandbox, _ = await relist.start_pod(cri, number)
            await relist.add_container(cri, number, sandbox, start=True)
        for _ in range(kubelets):
            kubelet = relist.Kubelet(cri, asyncio.get_running_loop())
            for _ in range(each):
                await kubelet.relist_ms()

    relist.run_virtual(relists)


def requests(rounds: int) -> None:
    """A pod is created, gets a status and is read."""

    async def ask(api: Any) -> None:
        for number in range(rounds):
            await _created(api, number)
            await _status(api, number, "Running")
            await api.request("GET", f"{API_PODS}/pod-{number}")

    _with_api(ask)


def watch_events(rounds: int) -> None:
    """Ten watches of all pods see a pod whose status changes."""

    async def watch(api: Any) -> None:
        await _created(api, 0)
        for _ in range(10):
            waiting.append(asyncio.create_task(_seen(api, rounds)))
        await asyncio.sleep(1)
        for number in range(rounds):
            await _status(api, 0, "Running", message=f"change {number}")
        await asyncio.gather(*waiting)

    waiting: list[asyncio.Task[None]] = []
    _with_api(watch)


async def _seen(api: Any, changes: int) -> None:
    seen = 0
    async for _ in api.watch(API_PODS):
        seen += 1
        if seen > changes:  # the first event tells of the pod as it is
            return


async def _created(api: Any, number: int) -> None:
    main = {"name": "main", "image": "localhost/busybox:1"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}"},
        "spec": {"containers": [main], "nodeName": "n1"},
    }
    assert (await api.request("POST", API_PODS, body=body)).status == 201


async def _status(api: Any, number: int, phase: str, **more: str) -> None:
    path = f"{API_PODS}/pod-{number}/status"
    body = {"status": {"phase": phase, **more}}
    merge = "application/merge-patch+json"
    assert (await api.request("PATCH", path, body=body, content_type=merge)).status == 200


def _with_api(work: Callable[[Any], Any]) -> None:
    api = package("fakekubeapi").FakeApi
    run_virtual = import_module("crash_loop").run_virtual

    async def main() -> None:
        await work(api())

    run_virtual(main)


def import_of_the_fake(rounds: int) -> None:
    for _ in range(rounds):
        from fakecri import FakeCRI  # noqa: F401


def cases(rounds: int) -> None:
    """The first so many of `CASES`, in a run of the suite in virtual time."""
    if not rounds:
        return
    package("kubelet_conformance")
    ids = [word for case in CASES[:rounds] for word in ("--id", case)]
    cli = import_module(f"{package('kubelet_conformance').__name__}.cli")
    code = cli.main(["run", "-q", "--jobs", "1", *ids])
    assert code == 0, f"the suite ended with {code}"


WORKLOADS: Final[Mapping[str, Workload]] = {
    "crash_loop": Workload("310 s of a crash loop", crash_loops, more=2, few=1),
    "pod_starts": Workload(f"{PODS} pods x 2 containers to Running", pods_to_running, 1, 1),
    "idle_pods": Workload(f"a minute with {IDLE_PODS} idle pods", idle_minutes, more=2, few=1),
    "lives": Workload("a pod's life in process (7 calls)", lives_of_pods, more=200, few=100),
    "first_relist": Workload(f"first relist of {PODS} pods", first_relists, more=5, few=2),
    "unchanged_relist": Workload(
        f"relist of {PODS} pods, nothing changed", unchanged_relists, 2000, 1000, fewer=1
    ),
    "requests": Workload("fake API server: three requests", requests, more=100, few=50),
    "watch_events": Workload("fake API server: an event for ten", watch_events, more=100, few=50),
    "import": Workload("from fakecri import FakeCRI", import_of_the_fake, 1, 1, warm=False),
    "one_case": Workload("kubelet-conformance run --id, one case", cases, 1, 1, warm=False),
    "suite": Workload("the suite's next cases", cases, more=len(CASES) - 1, few=3, fewer=1),
}


def forked(run: Callable[[int], object], rounds: int) -> dict[str, float]:
    """Do the rounds in a child process; its process ID and CPU seconds. Where it fails, or has used
    code of another tree, the error's text is the last that is said, and this process ends."""
    if (pid := os.fork()) == 0:
        code = 1
        try:
            run(rounds)
            if strange := of_other_trees():
                print(f"not of this tree: {' '.join(strange)}", file=sys.stderr)
            code = 1 if strange else 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        sys.exit(1)
    return {"rounds": rounds, "pid": pid, "cpu_s": used.ru_utime + used.ru_stime}


def of_other_trees() -> list[str]:
    """Modules of the project that were found elsewhere than in the tree."""
    tree = os.path.join(os.path.realpath(sys.argv[1]), "")
    return [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in PACKAGES
        and not os.path.realpath(getattr(module, "__file__", None) or tree).startswith(tree)
    ]


def main() -> None:
    """The command. What the workload prints goes to the standard error."""
    workload, few = WORKLOADS[sys.argv[2]], "--few" in sys.argv[3:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if workload.warm:
        workload.run(1)
    for rounds in (workload.fewer, workload.fewer + (workload.few if few else workload.more)):
        print(json.dumps(forked(workload.run, rounds)), file=answers, flush=True)


if __name__ == "__main__":
    main()
