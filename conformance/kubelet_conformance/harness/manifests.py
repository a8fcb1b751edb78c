"""Pods as cases write them: a manifest, together with what its containers do.

`pod("web", container("main", exits(1)))` gives a `PodPlan`: a v1 Pod manifest whose containers
carry the compiled command, and the workloads for a fake runtime to play.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from kubelet_conformance.harness.workload import Workload, command, has_file, runs
from kubeobjects.structs import replace

IMAGE: Final = "localhost/busybox:1"
OTHER_IMAGE: Final = "localhost/busybox:2"  # the same content under another tag
MISSING_IMAGE: Final = "localhost/missing:1"
NO_FIELDS: Final[Mapping[str, Any]] = MappingProxyType({})


class Exec(Struct, frozen=True):
    """A command that a probe or a hook runs inside a container, and how it ends. A real runtime
    runs the command; a fake one answers as the other fields say."""

    command: tuple[str, ...]
    exit_code: int = 0
    takes_s: float = 0.0
    stdout: str = ""
    stderr: str = ""


class Probe(Struct, frozen=True, kw_only=True):
    """The fields that all probes have, as in the API; a probe of a case is one of the
    subclasses."""

    period_s: int = 1
    failure_threshold: int = 1
    success_threshold: int = 1
    initial_delay_s: int = 0
    timeout_s: int = 5
    grace_s: int | None = None
    """terminationGracePeriodSeconds; None: not set."""

    def manifest(self, kind: str) -> dict[str, Any]:
        """The API's form of a probe of that kind (`liveness`, ...)."""
        probe: dict[str, Any] = {
            **self.action(kind),
            "periodSeconds": self.period_s,
            "failureThreshold": self.failure_threshold,
            "successThreshold": self.success_threshold,
            "timeoutSeconds": self.timeout_s,
        }
        if self.initial_delay_s:
            probe["initialDelaySeconds"] = self.initial_delay_s
        if self.grace_s is not None:
            probe["terminationGracePeriodSeconds"] = self.grace_s
        return probe

    def action(self, kind: str) -> dict[str, Any]:
        """The field of the API that says what the probe does: exec, httpGet, tcpSocket or grpc.
        Raises TypeError for a probe that has none."""
        raise TypeError(
            f"{type(self).__name__}: wanted a probe that says what to do: ExecProbe, RunProbe, "
            "http_probe, tcp_probe or grpc_probe"
        )

    def prepared(self, kind: str, work: Workload) -> Workload:
        """The workload of the container with what the probe needs of it."""
        return work


class ExecProbe(Probe, frozen=True, kw_only=True):
    """An exec probe that succeeds from `from_s` to `until_s` seconds after the container's start
    (until None: for ever)."""

    from_s: float = 0.0
    until_s: float | None = None

    def action(self, kind: str) -> dict[str, Any]:
        return {"exec": {"command": ["test", "-e", f"/tmp/{kind}"]}}

    def prepared(self, kind: str, work: Workload) -> Workload:
        return work.also(has_file(f"/tmp/{kind}", self.from_s, self.until_s))


class RunProbe(Probe, frozen=True, kw_only=True):
    """An exec probe of any command."""

    run: Exec

    def action(self, kind: str) -> dict[str, Any]:
        return {"exec": {"command": list(self.run.command)}}


class NetProbe(Probe, frozen=True, kw_only=True):
    """A probe over the network: `fields` is its httpGet, tcpSocket or grpc as in the API. What
    listens there is part of the container's workload (the word `serves`)."""

    fields: Mapping[str, Any]

    def action(self, kind: str) -> dict[str, Any]:
        return dict(self.fields)


def http_probe(
    port: int | str, path: str = "/", *, probe: Mapping[str, Any] = NO_FIELDS, **http_get: Any
) -> NetProbe:
    """An httpGet probe. `probe`: fields of `Probe`; `http_get`: further fields of httpGet."""
    return NetProbe(fields={"httpGet": {"port": port, "path": path, **http_get}}, **probe)


def tcp_probe(port: int | str, **probe: Any) -> NetProbe:
    """A tcpSocket probe; `probe`: fields of `Probe`."""
    return NetProbe(fields={"tcpSocket": {"port": port}}, **probe)


def grpc_probe(port: int, service: str | None = None, **probe: Any) -> NetProbe:
    """A grpc probe; `probe`: fields of `Probe`."""
    named = {} if service is None else {"service": service}
    return NetProbe(fields={"grpc": {"port": port, **named}}, **probe)


class Container(Struct, frozen=True):
    """One container of a plan: its manifest, what it does, and the commands that run inside it."""

    manifest: Mapping[str, Any]
    workload: Workload
    execs: tuple[Exec, ...] = ()

    @property
    def name(self) -> str:
        """The container's name in its manifest."""
        return str(self.manifest["name"])


class PodPlan(Struct, frozen=True):
    """A pod to run: its manifest and its containers."""

    manifest: Mapping[str, Any]
    containers: tuple[Container, ...] = field(default=())  # init containers first

    @property
    def name(self) -> str:
        """The pod's name in its manifest."""
        return str(self.manifest["metadata"]["name"])

    def renamed(self, name: str) -> PodPlan:
        """The same pod under another name."""
        metadata = {**self.manifest["metadata"], "name": name}
        return replace(self, manifest={**self.manifest, "metadata": metadata})


def hook(*, takes_s: float = 0.0, exit_code: int = 0, name: str = "hook") -> Exec:
    """A lifecycle hook; `name` tells the hooks of a pod apart."""
    script = f"sleep {takes_s:g}; exit {exit_code} # {name}"
    return Exec(("/bin/sh", "-c", script), exit_code, takes_s)


def container(
    name: str,
    workload: Workload | None = None,
    *,
    image: str = IMAGE,
    probes: Mapping[str, Probe] | None = None,
    hooks: Mapping[str, Exec] | None = None,
    **fields: Any,
) -> Container:
    """A container. `probes`: by `liveness`, `readiness`, `startup`. `hooks`: by `postStart`,
    `preStop`. `fields`: further fields of the API, for example `resources=...`."""
    work = workload or runs()
    manifest: dict[str, Any] = {"name": name, "image": image, "imagePullPolicy": "IfNotPresent"}
    for kind, probe in (probes or {}).items():
        work = probe.prepared(kind, work)
        manifest[f"{kind}Probe"] = probe.manifest(kind)
    if hooks:
        manifest["lifecycle"] = {
            kind: {"exec": {"command": list(run.command)}} for kind, run in hooks.items()
        }
    manifest["command"] = command(name, work)
    probe_runs = [p.run for p in (probes or {}).values() if isinstance(p, RunProbe)]
    execs = (*(hooks or {}).values(), *probe_runs)
    return Container({**manifest, **fields}, work, execs)


def sidecar(name: str, workload: Workload | None = None, **fields: Any) -> Container:
    """An init container that keeps running (restartPolicy Always)."""
    return container(name, workload, restartPolicy="Always", **fields)


def pod(
    name: str,
    *containers: Container,
    init: Sequence[Container] = (),
    grace_s: int | None = 2,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> PodPlan:
    """A pod; without containers it gets one named `main` that runs. `grace_s` None leaves the
    API's default (30 s). `spec`: further fields of the pod spec, for example
    `restartPolicy="Never"`."""
    main = containers or (container("main"),)
    fields: dict[str, Any] = {"containers": [dict(c.manifest) for c in main]}
    if init:
        fields["initContainers"] = [dict(c.manifest) for c in init]
    if grace_s is not None:
        fields["terminationGracePeriodSeconds"] = grace_s
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {**fields, **spec},
    }
    return PodPlan(manifest, (*init, *main))
