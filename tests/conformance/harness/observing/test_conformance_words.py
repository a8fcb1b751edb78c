"""Calls and statuses on one line."""

from types import SimpleNamespace

from kubelet_conformance.harness.observing.words import describe, is_write, state_name, write_name


def test_names_of_calls_and_states() -> None:
    call = SimpleNamespace(method="RunPodSandbox", container="", attempt=0)
    assert write_name(call) == "RunPodSandbox/0"
    assert is_write(call)
    assert not is_write(SimpleNamespace(method="ListContainers"))
    assert state_name({"waiting": {"reason": "CrashLoopBackOff"}}) == "waiting(CrashLoopBackOff)"
    entry = {"name": "main", "state": {"running": {}}, "ready": True, "restartCount": 2}
    status = {"phase": "Running", "containerStatuses": [entry]}
    assert describe(status) == "Running; main=running ready restarts=2"
    entry["ready"] = False
    assert describe(status) == "Running; main=running restarts=2", "a kubelet that tells no more"
    entry["started"] = True
    assert describe(status) == "Running; main=running started restarts=2"
    entry["started"] = False
    assert describe(status) == "Running; main=running not started restarts=2"
