"""Histories of one pod in the making, for tests of laws of worlds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.laws import (
    LAWS,
    History,
    Law,
    Planned,
    Shown,
    ask,
    fitting,
    probing,
    promptness,
    reasons,
    remembering,
    telling,
)
from kubelet_conformance.laws.history import There

NOTES = {"kubernetes.io/config.source": "api"}
POD_PATH = "/api/v1/namespaces/default/pods/web"
END_S = 700.0


class Made:
    """A history of one pod, `web`, in the making."""

    def __init__(self, **spec: Any) -> None:
        self.spec = {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 10,
            "containers": [{"name": "main"}],
            **spec,
        }
        self.calls: list[Any] = []
        self.shown: list[Shown] = []
        self.requests: list[Any] = []
        self.by_users: list[Any] = []
        self.planned = [Planned(0.5, "calm")]
        self.events: list[Any] = []
        self.there: There | None = None
        self.config: dict[str, Any] = {}
        self.also: dict[str, Any] = {}
        self.show(1.0, "Pending")

    def call(
        self, method: str, at_s: float, request: Any, response: Any = None, **said: Any
    ) -> None:
        self.calls.append(
            SimpleNamespace(
                **{
                    "method": method,
                    "request": request,
                    "response": response,
                    "error": None,
                    "disturbed": False,
                    "started_s": at_s,
                    "ended_s": at_s + 0.1,
                    "uid": "u",
                    "pod": "web",
                    "container": "",
                    **said,
                }
            )
        )

    def sandbox(self, at_s: float, error: Any = None) -> None:
        metadata = cri.PodSandboxMetadata(name="web", uid="u", namespace="default")
        config = cri.PodSandboxConfig(metadata=metadata, annotations=NOTES)
        answer = cri.RunPodSandboxResponse(pod_sandbox_id=f"box{at_s:g}")
        self.call(
            "RunPodSandbox", at_s, cri.RunPodSandboxRequest(config=config), answer, error=error
        )

    def runs(self, one: str, at_s: float, name: str = "main", box: str = "box2") -> None:
        """A container with that ID is made and started."""
        request = cri.CreateContainerRequest(
            pod_sandbox_id=box,
            config=cri.ContainerConfig(metadata=cri.ContainerMetadata(name=name)),
            sandbox_config=cri.PodSandboxConfig(
                metadata=cri.PodSandboxMetadata(name="web", uid="u")
            ),
        )
        made = cri.CreateContainerResponse(container_id=one)
        self.call("CreateContainer", at_s, request, made, container=name)
        start = cri.StartContainerRequest(container_id=one)
        self.call("StartContainer", at_s + 0.2, start, cri.StartContainerResponse(), container=name)

    def ends(self, one: str, at_s: float, code: int = 0, noticed_s: float = 0.0) -> None:
        """It ends, and the kubelet sees it then, or when it is `noticed`."""
        status = cri.ContainerStatus(
            state=cri.CONTAINER_EXITED, exit_code=code, started_at=1, finished_at=int(at_s * 1e9)
        )
        request = cri.ContainerStatusRequest(container_id=one)
        answer = cri.ContainerStatusResponse(status=status)
        self.call("ContainerStatus", noticed_s or at_s, request, answer)

    def stops(self, one: str, at_s: float, timeout: int = 10) -> None:
        request = cri.StopContainerRequest(container_id=one, timeout=timeout)
        self.call("StopContainer", at_s, request, cri.StopContainerResponse())

    def runs_command(self, one: str, at_s: float, command: str, code: int = 0, **said: Any) -> None:
        request = cri.ExecSyncRequest(container_id=one, cmd=[command])
        self.call("ExecSync", at_s, request, cri.ExecSyncResponse(exit_code=code), **said)

    def show(self, at_s: float, phase: str, *containers: dict[str, Any], **status: Any) -> None:
        told = {"phase": phase, "containerStatuses": list(containers), **status}
        self.shown.append(Shown(at_s, "web", "u", told))

    def user_deletes(self, at_s: float, grace: int | None = None) -> None:
        body = None if grace is None else {"gracePeriodSeconds": grace}
        self.by_users.append(_request("DELETE", POD_PATH, at_s, body))

    def asks(
        self, method: str, path: str, at_s: float, body: Any = None, status: int = 200
    ) -> None:
        self.requests.append(_request(method, path, at_s, body, status))

    def pod(self) -> dict[str, Any]:
        return {
            "metadata": {"name": "web", "uid": "u", "annotations": NOTES},
            "spec": self.spec,
        }

    def broken(self) -> set[str]:
        """The names of the broken laws of worlds. `also`: other pods, by UID."""
        history = History(
            start_s=0.0,
            end_s=END_S,
            calls=sorted(self.calls, key=lambda call: call.started_s),
            requests=self.requests,
            by_users=self.by_users,
            shown=self.shown,
            planned=self.planned,
            events=self.events,
            pods={uid: [pod] for uid, pod in {"u": self.pod(), **self.also}.items()},
            stored={"web": self.pod()},
            there=self.there,
            config=self.config,
        )
        return {breach.law.name for breach in ask(OF_WORLDS, history)}


def laws_of(*modules: Any) -> list[Law]:
    """The laws of these modules."""
    names = {each.__name__ for each in modules}
    return [law for law in LAWS if law.breaches.__module__ in names]


OF_WORLDS = laws_of(fitting, probing, promptness, reasons, remembering, telling)


def _request(method: str, path: str, at_s: float, body: Any = None, status: int = 200) -> Any:
    return SimpleNamespace(
        method=method, path=path, body=body, status=status, started_s=at_s, ended_s=at_s + 0.1
    )


def shown(name: str = "main", restarts: int = 0, one: str = "", **state: Any) -> dict[str, Any]:
    """The status of a container."""
    last = state.pop("last", None)
    ready = state.pop("ready", False)
    return {
        "name": name,
        "restartCount": restarts,
        "containerID": f"fake://{one}",
        "ready": ready,
        "state": state,
        **({"lastState": {"terminated": last}} if last else {}),
    }


def running(**spec: Any) -> Made:
    """A pod whose only container runs since 3 s."""
    made = Made(**spec)
    made.sandbox(2.0)
    made.runs("a", 3.0)
    return made


EXEC = {"periodSeconds": 2, "failureThreshold": 2}
PROBES = {
    kind: {"exec": {"command": [command]}, **EXEC}
    for kind, command in (
        ("readinessProbe", "ready"),
        ("livenessProbe", "alive"),
        ("startupProbe", "begun"),
    )
}


def with_probes(*kinds: str, hook: str = "") -> Made:
    entry: dict[str, Any] = {"name": "main", **{kind: PROBES[kind] for kind in kinds}}
    if hook:
        entry["lifecycle"] = {hook: {"exec": {"command": ["hook"]}}}
    return running(containers=[entry])
