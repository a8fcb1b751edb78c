"""What a static pod gets beyond its manifest: identity and defaults (SRC-030..036, PROBE-003)."""

from __future__ import annotations

from typing import Any

import pytest
from manifest_reading import accepted, manifest, read, refusal, volumes, with_container
from pods import make_pod

from refkubelet.model.defaults import apply_api_defaults
from refkubelet.model.objects import Pod, to_dict
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import read_manifest


def test_the_pod_is_what_a_real_kubelet_shows_SRC_033_SRC_036() -> None:
    """Against the recorded pod of s01: everything but UID, time and status."""
    pod = to_dict(
        read(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: one\nspec:\n  containers:\n"
            "  - name: main\n    image: localhost/busybox:1\n    command: [/bin/sh, -c, x]\n",
            node="golden",
        )
    )
    uid = pod["metadata"].pop("uid")
    assert len(uid) == 32
    assert int(uid, 16)
    assert pod["metadata"] == {
        "name": "one-golden",
        "namespace": "default",
        "annotations": {"kubernetes.io/config.hash": uid, "kubernetes.io/config.source": "file"},
    }
    assert pod["spec"] == {
        "containers": [
            {
                "name": "main",
                "image": "localhost/busybox:1",
                "command": ["/bin/sh", "-c", "x"],
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "nodeName": "golden",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
        "enableServiceLinks": True,
    }
    assert pod["status"] == {"phase": "Pending"}


def uid_of(pod: Pod) -> str | None:
    return pod.metadata.uid if pod.metadata else None


def test_the_uid_changes_with_content_file_and_node_only_SRC_031() -> None:
    text = manifest(labels={"b": "1", "a": "2"})
    same = "# a comment\n" + text.replace("name: web", '"name":   "web"')
    assert uid_of(read(same)) == uid_of(read(text))
    others = [
        read(manifest()),
        read(text, origin="/other.yaml"),
        read(text, node="n2"),
    ]
    assert len({uid_of(p) for p in [read(text), *others]}) == 4


def test_the_uid_is_the_same_on_every_day_SRC_030_SRC_031() -> None:
    """A release that changes it would restart every static pod of a node. The hash runs over the
    whole defaulted object, the node and the file."""
    assert uid_of(read(with_container(image="busybox:1"))) == "ea96516dd16aa611740b25c578eef1db"


def test_an_explicit_uid_and_namespace_are_kept_SRC_032() -> None:
    pod = read(manifest(uid="my-uid", namespace="kube-system"))
    assert pod.metadata is not None
    assert (pod.metadata.uid, pod.metadata.namespace) == ("my-uid", "kube-system")
    assert (pod.metadata.annotations or {})["kubernetes.io/config.hash"] == "my-uid"


def test_http_pods_get_no_toleration_SRC_035() -> None:
    pod = read_manifest(
        manifest().encode(), source=PodSource.HTTP, origin="http://x", node_name="n"
    )
    assert pod.spec is not None
    assert pod.spec.tolerations is None


def test_probe_defaults_PROBE_003() -> None:
    pod = to_dict(read(with_container(livenessProbe={"httpGet": {"port": 80}})))
    assert pod["spec"]["containers"][0]["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


def test_pull_policy_and_requests_default_SRC_036() -> None:
    text = manifest(
        {"containers": [{"name": "c", "image": "x", "resources": {"limits": {"cpu": 1}}}]}
    )
    container = to_dict(read(text))["spec"]["containers"][0]
    assert container["imagePullPolicy"] == "Always"
    assert container["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}


def test_a_name_is_needed_SRC_037() -> None:
    text = manifest(generateName="web-").replace("  name: web\n", "")
    assert refusal(text) == "invalid pod: name is needed for the pod"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1.5", "1500m"),
        (0.0005, "1m"),
        (" 1 ", "1"),
        (None, "0"),
        (1e3, "1k"),
        ("1.5Mi", "1536Ki"),
        ("1024Mi", "1Gi"),
        ("0.5", "500m"),
    ],
)
def test_amounts_have_the_form_of_the_api_SRC_036(written: Any, shown: str) -> None:
    """As kubelet 1.36.2 shows them; otherwise a status would differ from the server's for ever."""
    text = with_container(resources={"limits": {"cpu": written}})
    spec = read(text).spec
    assert spec is not None
    resources = spec.containers[0].resources
    assert resources is not None
    assert (resources.limits, resources.requests) == ({"cpu": shown}, {"cpu": shown})


def test_a_negative_grace_means_one_second_SRC_036() -> None:
    assert (
        accepted({"terminationGracePeriodSeconds": -5})["spec"]["terminationGracePeriodSeconds"]
        == 1
    )


def test_references_in_volumes_have_their_defaults_SRC_036() -> None:
    field = {"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}
    amount = {
        "path": "b",
        "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"},
    }
    spec = volumes(
        {"downwardAPI": {"items": [field, amount]}},
        {"projected": {"sources": [{"downwardAPI": {"items": [field, amount]}}]}},
        {"image": {"reference": "a"}},
        {"image": {"reference": "a:1"}},
        {"emptyDir": {"sizeLimit": 1.5}},
    )
    plain, projected, latest, tagged, directory = accepted(spec)["spec"]["volumes"]
    for items in (
        plain["downwardAPI"]["items"],
        projected["projected"]["sources"][0]["downwardAPI"]["items"],
    ):
        assert items[0]["fieldRef"]["apiVersion"] == "v1"
        assert items[1]["resourceFieldRef"]["divisor"] == "0"
    policies = [volume["image"]["pullPolicy"] for volume in (latest, tagged)]
    assert policies == ["Always", "IfNotPresent"]
    assert directory["emptyDir"]["sizeLimit"] == "1500m"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, ["mine", "exists"]),
        ({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}, ["exists", "mine"]),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, ["given", "mine", "exists"]),
    ],
)
def test_the_toleration_of_file_pods_is_there_once_SRC_035(
    given: dict[str, Any], shown: list[str]
) -> None:
    mine = {"key": "a", "operator": "Exists"}
    exists = {"operator": "Exists", "effect": "NoExecute"}
    names = {"given": given, "mine": mine, "exists": exists}
    tolerations = [given, mine] if given else [mine]
    assert accepted({"tolerations": tolerations})["spec"]["tolerations"] == [
        names[name] for name in shown
    ]


def test_a_status_in_a_manifest_stays_but_for_its_phase_SRC_033() -> None:
    text = manifest() + "status: {phase: Failed, reason: why, startTime: 2026-01-01T00:00:00Z}\n"
    status = to_dict(read(text))["status"]
    assert (status["phase"], status["reason"]) == ("Pending", "why")


@pytest.mark.parametrize(
    ("kind", "given", "defaults"),
    [
        ("azureDisk", {"diskName": "d", "diskURI": "https://d"},
         {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False}),
        ("configMap", {"name": "c"}, {"defaultMode": 0o644}),
        ("downwardAPI", {}, {"defaultMode": 0o644}),
        ("hostPath", {"path": "/a"}, {"type": ""}),
        ("iscsi", {"targetPortal": "p", "iqn": "i", "lun": 0}, {"iscsiInterface": "default"}),
        ("projected", {}, {"defaultMode": 0o644}),
        ("rbd", {"monitors": [], "image": "i"},
         {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
        ("scaleIO", {"gateway": "g", "system": "s", "secretRef": {}},
         {"storageMode": "ThinProvisioned", "fsType": "xfs"}),
        ("secret", {"secretName": "s"}, {"defaultMode": 0o644}),
    ],
)  # fmt: skip
def test_volumes_have_their_defaults_SRC_036_NODE_205(
    kind: str, given: dict[str, Any], defaults: dict[str, Any]
) -> None:
    def with_defaults(source: dict[str, Any]) -> dict[str, Any]:
        pod = apply_api_defaults(make_pod(volumes=[{"name": "v", kind: source}]))
        (volume,) = to_dict(pod)["spec"]["volumes"]
        assert set(volume) == {"name", kind}
        return {name: volume[kind][name] for name in defaults}

    assert with_defaults(given) == defaults
    own = {name: 1 if name == "defaultMode" else "own" for name in defaults if name != "readOnly"}
    assert with_defaults({**given, **own}).items() >= own.items()
    empty = {name: "" for name, value in defaults.items() if isinstance(value, str)}
    kept = {"azureDisk": empty}.get(kind, {})
    assert with_defaults({**given, **empty}) == {**defaults, **kept}


def test_a_volume_without_a_source_is_an_empty_directory_SRC_036() -> None:
    named = [{"name": "a"}, {"name": "b", "nfs": {"server": "s", "path": "/"}}]
    assert to_dict(apply_api_defaults(make_pod(volumes=named)))["spec"]["volumes"] == [
        {"name": "a", "emptyDir": {}},
        named[1],
    ]


@pytest.mark.parametrize("host_network", [False, True])
def test_ports_have_their_defaults_SRC_036(host_network: bool) -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82, "protocol": "UDP"}]
    pod = make_pod({"name": "c", "ports": ports}, hostNetwork=host_network)
    first = {"containerPort": 80, "protocol": "TCP"} | ({"hostPort": 80} if host_network else {})
    assert to_dict(apply_api_defaults(pod))["spec"]["containers"][0]["ports"] == [first, ports[1]]


def test_references_of_variables_have_their_defaults_SRC_036() -> None:
    env = [
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "C", "value": "x"},
    ]
    pod = apply_api_defaults(make_pod({"name": "c", "env": env}))
    found = to_dict(pod)["spec"]["containers"][0]["env"]
    assert found[0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert found[1]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"
    assert found[2] == env[2]


def test_requests_of_hooks_have_their_defaults_SRC_036() -> None:
    hook = {"httpGet": {"port": 80}}
    pod = apply_api_defaults(make_pod({"name": "c", "lifecycle": {"preStop": hook}}))
    found = to_dict(pod)["spec"]["containers"][0]["lifecycle"]["preStop"]["httpGet"]
    assert (found["scheme"], found["path"]) == ("HTTP", "/")


def test_huge_pages_of_containers_are_limits_of_the_pod_SRC_036() -> None:
    resources = {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1", "example.com/a": "1"}}
    found = to_dict(
        apply_api_defaults(
            make_pod({"name": "c", "resources": resources}, resources={"limits": {"memory": "1Gi"}})
        )
    )["spec"]["resources"]
    assert found["limits"] == {"memory": "1Gi", "hugepages-2Mi": "2Mi"}
    assert found["requests"] == {"memory": "1Gi", "hugepages-2Mi": "2Mi", "cpu": "1"}
