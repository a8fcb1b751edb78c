"""For each law that is asked of recordings one that breaks it, and it alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kubelet_conformance.cli import main
from kubelet_conformance.recordings.asking import WANTS

Row = dict[str, Any]
START = 1_700_000_000
"""The wall clock at the begin, seconds since 1970."""
SPEC = {"restartPolicy": "Always", "containers": [{"name": "main"}]}
READY = {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


class Recorded:
    """A recording that is written: calls and statuses, one a second."""

    def __init__(self, spec: Mapping[str, Any] = SPEC, source: str = "api") -> None:
        self.calls: list[Row] = []
        self.pods: list[Row] = []
        self.now_s = 0.0
        self.source = source
        notes = {"kubernetes.io/config.source": source}
        self.metadata = {"name": "web", "uid": "u", "generation": 1, "annotations": notes}
        self.spec = spec

    def call(self, method: str, request: Row, response: Row | None = None, **more: Any) -> None:
        times = {"t_start": self.now_s, "t_end": self.now_s + 0.1, "method": method}
        answer = {} if "error" in more else {"response": response or {}}
        self.calls.append({**times, "request": request, **answer, **more})
        self.now_s += 1

    def sandbox(self, box: str = "box", *, uid: str = "u", attempt: int = 0) -> Recorded:
        metadata = {"name": "web", "uid": uid, "namespace": "default", "attempt": attempt}
        notes = {"kubernetes.io/config.source": self.source}
        config = {"metadata": metadata, "annotations": notes}
        self.call("RunPodSandbox", {"config": config}, {"pod_sandbox_id": box})
        return self

    def runs(self, one: str, *, attempt: int = 0, of: str = "main", box: str = "box") -> Recorded:
        config = {"metadata": {"name": of, "attempt": attempt}}
        sandbox = {"metadata": {"name": "web", "uid": "u", "namespace": "default"}}
        request = {"pod_sandbox_id": box, "config": config, "sandbox_config": sandbox}
        self.call("CreateContainer", request, {"container_id": one})
        self.call("StartContainer", {"container_id": one})
        return self

    def sees(self, one: str, **status: Any) -> Recorded:
        """The kubelet asks for the status of a container, which was started a second ago."""
        began_ns = round((START + self.now_s - 1) * 1e9)
        told = {"id": one, "started_at": str(began_ns), **status}
        self.call("ContainerStatus", {"container_id": one}, {"status": told})
        return self

    def exits(self, one: str, code: int = 0) -> Recorded:
        ended_ns = round((START + self.now_s) * 1e9)
        state = {"state": "CONTAINER_EXITED", "exit_code": code, "finished_at": str(ended_ns)}
        return self.sees(one, **state)

    def stops(self, one: str, timeout: int) -> Recorded:
        self.call("StopContainer", {"container_id": one, "timeout": str(timeout)})
        return self

    def shows(self, phase: str = "Running", **status: Any) -> Recorded:
        first = {} if self.pods else {"metadata": self.metadata, "spec": self.spec}
        row = {"t": self.now_s, "pod": "default/web", "uid": "u", **first}
        self.pods.append({**row, "status": {"phase": phase, **status}})
        self.now_s += 1
        return self

    def write(self, folder: Path) -> Path:
        for name, rows in (("cri.jsonl", self.calls), ("pods.jsonl", self.pods)):
            if rows:
                lines = "".join(json.dumps(row) + "\n" for row in rows)
                (folder / name).write_text(lines)
        return folder


def one(container: str = "", **status: Any) -> Row:
    """The status of the only container."""
    told = {"name": "main", "containerID": f"containerd://{container}", "state": {}}
    told |= {"image": "a", "imageID": "a", "ready": False, "restartCount": 0, **status}
    return {"containerStatuses": [told]}


def _failed_call() -> Recorded:
    recorded = Recorded().sandbox()
    error = {"code": "INVALID_ARGUMENT", "message": "no image"}
    recorded.call("PullImage", {"image": {"image": ""}}, error=error)
    return recorded


def _removed_early() -> Recorded:
    recorded = Recorded().sandbox().runs("a")
    recorded.call("RemoveContainer", {"container_id": "a"})
    return recorded


def _command_in_what_is_over() -> Recorded:
    recorded = Recorded().sandbox().runs("a").exits("a")
    recorded.now_s += 3
    recorded.call("ExecSync", {"container_id": "a", "cmd": ["x"]}, {})
    return recorded


def _early_again() -> Recorded:
    recorded = Recorded().sandbox().shows("Pending")
    for attempt, name in enumerate("abc"):
        recorded.runs(name, attempt=attempt).exits(name)
    return recorded


def _other_address() -> Recorded:
    return Recorded().sandbox().shows("Pending").shows(podIP="10.0.0.9")


def _times_change() -> Recorded:
    later = {**READY, "type": "Initialized", "lastTransitionTime": "2026-01-01T00:01:00Z"}
    before = {**later, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return Recorded().sandbox().shows(conditions=[before]).shows(conditions=[later])


def _cpus_of_two() -> Recorded:
    amounts = {"limits": {"cpu": "1", "memory": "1Gi"}}
    containers = [{"name": name, "resources": amounts} for name in ("main", "side")]
    recorded = Recorded({**SPEC, "containers": containers}).sandbox().shows()
    for name in ("main", "side"):
        recorded.runs(name, of=name)
        config = recorded.calls[-2]["request"]["config"]
        config["linux"] = {"resources": {"cpuset_cpus": "3"}}
    return recorded


def _users_of_two() -> Recorded:
    recorded = Recorded().sandbox().sandbox("other", uid="v")
    users = {"uids": [{"host_id": 65536, "length": 65536}]}
    for call in recorded.calls:
        options = {"namespace_options": {"userns_options": users}}
        call["request"]["config"]["linux"] = {"security_context": options}
    return recorded


def _cgroup_of_two() -> Recorded:
    recorded = Recorded().sandbox().sandbox("other", uid="v")
    for call in recorded.calls:
        call["request"]["config"]["linux"] = {"cgroup_parent": "/kubepods/podu"}
    return recorded


INITS = {**SPEC, "initContainers": [{"name": "first"}]}
STATIC = "file"
BROKEN: dict[str, Callable[[], Recorded]] = {
    "one-running": lambda: Recorded().sandbox().runs("a").runs("b", attempt=1),
    "one-sandbox": lambda: Recorded().sandbox().sandbox("other", attempt=1),
    "one-static": lambda: Recorded(source=STATIC).sandbox().sandbox("other", uid="v"),
    "attempts-grow": lambda: Recorded().sandbox().runs("a").exits("a").runs("b"),
    "nothing-after-its-end": lambda: Recorded().sandbox().shows("Succeeded").runs("a"),
    "init-in-order": lambda: Recorded(INITS).sandbox().shows("Pending").runs("a"),
    "policy-obeyed": lambda: (
        Recorded({**SPEC, "restartPolicy": "Never"})
        .sandbox()
        .shows("Pending")
        .runs("a")
        .exits("a", 1)
        .runs("b", attempt=1)
    ),
    "backed-off": _early_again,
    "no-mistaken-call": _failed_call,
    "removed-when-over": _removed_early,
    "grace-kept": lambda: Recorded().sandbox().runs("a").stops("a", 1),
    "nothing-in-what-is-over": _command_in_what_is_over,
    "given-once": lambda: _cpus_of_two(),
    "user-ids-given-once": lambda: _users_of_two(),
    "cgroups-given-once": lambda: _cgroup_of_two(),
    "phases-go-on": lambda: Recorded().shows("Failed").shows("Running"),
    "restarts-go-up": lambda: Recorded().shows(**one(restartCount=2)).shows(**one(restartCount=1)),
    "ready-while-running": lambda: Recorded().shows(**one(ready=True)),
    "conditions-agree": lambda: Recorded().shows(conditions=[{**READY, "type": "Ready"}]),
    "transitions-have-times": _times_change,
    "as-the-runtime-had-it": lambda: Recorded().shows(**one("b", state={"running": {}})),
    "counted-as-made": lambda: (
        Recorded()
        .sandbox()
        .runs("a", attempt=3)
        .shows(**one("a", state={"running": {}}, restartCount=1))
    ),
    "start-time-kept": lambda: (
        Recorded().shows(startTime="2026-01-01T00:00:00Z").shows(startTime="2026-01-01T00:00:01Z")
    ),
    "addresses-of-sandbox": _other_address,
    "generation-not-back": lambda: Recorded().shows(observedGeneration=2),
}


def test_each_law_that_is_asked_has_one() -> None:
    assert BROKEN.keys() == WANTS.keys()


@pytest.mark.parametrize("law", BROKEN)
def test_a_broken_recording_is_told(
    law: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = BROKEN[law]().write(tmp_path)
    if not (folder / "cri.jsonl").is_file():
        version = {"t_start": 0, "t_end": 0.1, "method": "Version", "request": {}, "response": {}}
        (folder / "cri.jsonl").write_text(json.dumps(version) + "\n")
    config = tmp_path / "kubelet.yaml"
    config.write_text("kind: KubeletConfiguration\n")
    words = ["check-trace", str(folder), "--kubelet-config", str(config)]
    assert main(words) == 1
    told = capsys.readouterr().out
    named = {line.split()[2] for line in told.splitlines() if ": law " in line}
    assert named == {law}, told


def test_what_others_do_to_the_runtime_can_be_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = BROKEN["one-running"]().write(tmp_path)
    assert main(["check-trace", str(folder)]) == 1
    assert "at 4.000 s" in capsys.readouterr().out
    assert main(["check-trace", "--outside", str(folder)]) == 0


def test_rules_of_a_proxy_are_no_mistakes_of_the_kubelet(tmp_path: Path) -> None:
    recorded = _failed_call()
    recorded.calls[-1]["disturbed"] = True
    assert main(["check-trace", str(recorded.write(tmp_path))]) == 0


def test_a_kubelet_that_follows_another_one_may_remove_what_it_finds(tmp_path: Path) -> None:
    recorded = Recorded().sandbox().runs("a")
    recorded.call("RuntimeConfig", {})
    recorded.call("RemoveContainer", {"container_id": "a"})
    assert main(["check-trace", str(recorded.write(tmp_path))]) == 0
