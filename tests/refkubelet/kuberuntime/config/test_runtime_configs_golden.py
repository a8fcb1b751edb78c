"""Sandbox and container configs equal those that the real kubelet sent (LIFE-132..141)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from golden_recording import Recording, recordings
from google.protobuf.json_format import MessageToDict, ParseDict
from kubecri.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Service, ServicePort, ServiceSpec
from lightkube.models.meta_v1 import ObjectMeta
from pods import make_pod
from runtime_doubles import Events

from refkubelet.cri.records import ImageRecord
from refkubelet.kuberuntime.common.runtime_deps import ApiObjects, RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import (
    DnsOptions,
    MemoryOptions,
    ResourceOptions,
    RuntimeOptions,
)
from refkubelet.kuberuntime.config.container import (
    ContainerConfigError,
    StartSpec,
    container_config,
)
from refkubelet.kuberuntime.config.sandbox import sandbox_config
from refkubelet.kuberuntime.kill import container_spec
from refkubelet.kuberuntime.run_options import RunFacts, run_container_options
from refkubelet.model.objects import Pod, decode_pod
from simclock import Ids, RealClock, Rng

KUBERNETES = Service(
    metadata=ObjectMeta(name="kubernetes", namespace="default"),
    spec=ServiceSpec(clusterIP="10.98.0.1", ports=[ServicePort(443, name="https")]),
)
MEMORY_BYTES = 24_105 * 1024 * 1024
PATH = "$KUBELET_ROOT/pods/{uid}/containers/{name}/"


def scenarios() -> list[str]:
    """All recordings with sandboxes: s01..s26 and their repetitions with an API server."""
    return [recording.name for recording in recordings()]


@dataclass
class RecordedPods:
    """The pods of a recording by UID, as the kubelet knew them at some second."""

    versions: dict[str, list[tuple[float, Pod]]] = field(default_factory=dict)

    def at(self, uid: str, second: float) -> Pod:
        first, *later = self.versions[uid]
        known = [pod for seen, pod in later if seen <= second]
        return known[-1] if known else first[1]


def recorded_pods(scenario: str) -> RecordedPods:
    """A static pod of a recording with an API server stands in its mirror, as it was made."""
    pods = RecordedPods()
    metadata: dict[str, dict[str, Any]] = {}
    for row in Recording(scenario).rows("pods.jsonl"):
        if "spec" not in row:
            continue
        if (uid := row["uid"]) not in metadata:
            annotations = row["metadata"].get("annotations", {})
            static_uid = annotations.pop("kubernetes.io/config.mirror", uid)
            metadata[uid] = {**row["metadata"], "uid": static_uid}
        elif metadata[uid]["uid"] != uid:
            continue  # nothing that is done to a mirror reaches its pod
        pod = decode_pod({"metadata": metadata[uid], "spec": row["spec"]})
        pods.versions.setdefault(metadata[uid]["uid"], []).append((row["t"], pod))
    return pods


def recorded_calls(scenario: str, method: str) -> list[dict[str, Any]]:
    return [r for r in Recording(scenario).rows("cri.jsonl") if r.get("method") == method]


def options(*, api: bool) -> RuntimeOptions:
    dns = DnsOptions(
        cluster_dns=("10.98.0.10",) if api else (),
        cluster_domain="cluster.local" if api else "",
        no_resolv_conf=True,
    )
    return RuntimeOptions(
        root_dir=Path("$KUBELET_ROOT"),
        pod_logs_dir=Path("$POD_LOGS"),
        node_name="golden",
        resources=ResourceOptions(memory=MemoryOptions(capacity_bytes=MEMORY_BYTES)),
        dns=dns,
    )


def deps() -> RuntimeDeps:
    return RuntimeDeps(RealClock(), Ids(Rng(1)), Events())


def has_api(scenario: str) -> bool:
    return Recording(scenario).has("kubelet-api-calls.jsonl")


@pytest.mark.parametrize("scenario", scenarios())
def test_sandbox_config_is_the_recorded_one_LIFE_133_LIFE_135(scenario: str) -> None:
    pods = recorded_pods(scenario)
    for call in recorded_calls(scenario, "RunPodSandbox"):
        wanted = ParseDict(call["request"]["config"], cri.PodSandboxConfig())
        pod = pods.at(wanted.metadata.uid, call["t_start"])
        for key in [k for k in wanted.annotations if k.startswith("kubernetes.io/config.")]:
            annotations = pod.metadata.annotations if pod.metadata else None
            if key not in (annotations or {}):  # added at the source, not shown by the API
                del wanted.annotations[key]
        made = sandbox_config(pod, wanted.metadata.attempt, options(api=has_api(scenario)))
        assert MessageToDict(made) == MessageToDict(wanted)


@pytest.mark.parametrize("scenario", scenarios())
def test_container_config_is_the_recorded_one_LIFE_136(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pods, api = recorded_pods(scenario), has_api(scenario)
    for call in recorded_calls(scenario, "CreateContainer"):
        wanted = ParseDict(call["request"]["config"], cri.ContainerConfig())
        pod = pods.at(wanted.labels["io.kubernetes.pod.uid"], call["t_start"])
        container = container_spec(pod, wanted.metadata.name)
        assert container is not None
        start = StartSpec(
            container,
            wanted.metadata.attempt,
            ImageRecord(wanted.image.image, 1),
            wanted.image.image,
            run=run_container_options(
                container,
                pod,
                RunFacts(
                    pod_ips=("10.99.0.6",),
                    objects=ApiObjects(services=(KUBERNETES,)) if api else None,
                ),
                deps=deps(),
                options=options(api=api),
            ),
        )
        made = container_config(start, pod, options(api=api))
        assert comparable(made) == comparable(wanted)


def test_every_recorded_config_is_made_again() -> None:
    counts = {
        method: sum(len(recorded_calls(s, method)) for s in scenarios())
        for method in ("RunPodSandbox", "CreateContainer")
    }
    assert counts == {"RunPodSandbox": 86, "CreateContainer": 208}


def comparable(config: Any) -> dict[str, Any]:
    """As a dict, with the random name of the termination log replaced and variables in order:
    the wire order of them is random (LIFE-137)."""
    fields = MessageToDict(config)
    fields.get("envs", []).sort(key=lambda variable: str(variable["key"]))
    text = json.dumps(fields, sort_keys=True)
    value: dict[str, Any] = json.loads(re.sub(r"(/containers/\w+/)[0-9a-f]{8}", r"\1LOG", text))
    return value


def test_files_of_a_container_are_made_LIFE_138(tmp_path: Path) -> None:
    volumes = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": str(tmp_path / "h"), "type": "DirectoryOrCreate"}},
    ]
    mounts = [
        {"name": "host", "mountPath": "/host", "readOnly": True},
        {"name": "scratch", "mountPath": "/scratch"},
    ]
    pod = make_pod({"name": "main", "volumeMounts": mounts}, volumes=volumes)
    config = config_of(pod, tmp_path)
    paths = [m.container_path for m in config.mounts]
    assert paths == ["/host", "/scratch", "/etc/hosts", "/dev/termination-log"]
    assert config.mounts[0].readonly
    scratch = Path(config.mounts[1].host_path)
    assert scratch == tmp_path / "pods/uid-web/volumes/kubernetes.io~empty-dir/scratch"
    assert "10.0.0.1\tweb\n" in Path(config.mounts[2].host_path).read_text()
    assert Path(config.mounts[3].host_path).stat().st_mode & 0o777 == 0o666


def config_of(pod: Pod, root: Path) -> Any:
    (main, *_), facts = pod.spec.containers, RunFacts(("10.0.0.1",))
    made = RuntimeOptions(
        root_dir=root,
        pod_logs_dir=root / "logs",
        node_name="n1",
        node_ips=("192.0.2.1",),
        host_network_ips=("192.0.2.1",),
    )
    run = run_container_options(main, pod, facts, deps(), options=made)
    return container_config(StartSpec(main, 0, ImageRecord("id", 1), "id", run=run), pod, made)


def test_environment_and_references_LIFE_137(tmp_path: Path) -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$(LATER)-$$(A)"},
        {"name": "LATER", "value": "x"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    main = {
        "name": "main",
        "env": env,
        "args": ["$(NAME)", "$(NOPE)"],
        "resources": {"limits": {"cpu": "1500m"}},
    }
    config = config_of(make_pod(main, meta={"labels": {"app": "shop"}}), tmp_path)
    values = {e.key: e.value.decode() for e in config.envs}
    assert values == {
        "A": "1",
        "B": "1-$(LATER)-$(A)",
        "LATER": "x",
        "NAME": "web",
        "IP": "10.0.0.1",
        "NODE": "n1",
        "APP": "shop",
        "CPU": "2",
    }
    assert list(config.args) == ["web", "$(NOPE)"]


@pytest.mark.parametrize(
    ("container", "spec", "text"),
    [
        (
            {"envFrom": [{"configMapRef": {"name": "cm"}}]},
            {},
            "couldn't get configMap default/cm, no kubeClient defined",
        ),
        (
            {"securityContext": {"runAsNonRoot": True}},
            {},
            "container has runAsNonRoot and image will run as root",
        ),
        ({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}, {}, "volume 'v'"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            {"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]},
            "volume 'v' is none of the known kinds",
        ),
    ],
)
def test_impossible_configs_say_why_LIFE_137_LIFE_141(
    container: dict[str, Any], spec: dict[str, Any], text: str, tmp_path: Path
) -> None:
    with pytest.raises(ContainerConfigError, match=re.escape(text)):
        config_of(make_pod({"name": "main", **container}, **spec), tmp_path)


def test_namespaces_LIFE_134() -> None:
    pod = make_pod(hostNetwork=True, hostPID=True, hostIPC=True)
    namespaces = sandbox_config(pod, 0, options(api=False)).linux.security_context.namespace_options
    assert (namespaces.network, namespaces.pid, namespaces.ipc) == (cri.NODE, cri.NODE, cri.NODE)
    assert sandbox_config(pod, 0, options(api=False)).hostname == ""
    shared = make_pod(shareProcessNamespace=True)
    config = sandbox_config(shared, 0, options(api=False))
    assert config.linux.security_context.namespace_options.pid == cri.POD


def test_oom_score_and_hash_pages_LIFE_139_LIFE_140(tmp_path: Path) -> None:
    guaranteed = {"limits": {"cpu": "1", "memory": "1Gi"}}
    resources = config_of(
        make_pod({"name": "m", "resources": guaranteed}), tmp_path
    ).linux.resources
    assert resources.oom_score_adj == -997
    assert resources.memory_swap_limit_in_bytes == resources.memory_limit_in_bytes == 1 << 30
    assert [h.page_size for h in resources.hugepage_limits] == ["2MB", "1GB"]
    assert (resources.cpu_shares, resources.cpu_quota) == (1024, 100_000)
