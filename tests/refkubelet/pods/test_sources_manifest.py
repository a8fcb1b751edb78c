"""One manifest in, one static pod or one reason out (SRC-004, SRC-030..038, PROBE-003)."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.model.objects import Pod, to_dict
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import ManifestError, read_manifest

FILE = "/etc/kubernetes/manifests/web.yaml"


def read(text: str, *, origin: str = FILE, node: str = "n1") -> Pod:
    return read_manifest(text.encode(), source=PodSource.FILE, origin=origin, node_name=node)


def manifest(spec: dict[str, Any] | None = None, **metadata: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", **metadata},
            "spec": {"containers": [{"name": "main", "image": "busybox:1"}], **(spec or {})},
        }
    )


def with_container(**fields: Any) -> str:
    return manifest({"containers": [{"name": "main", "image": "busybox:1", **fields}]})


def refusal(text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        read(text)
    return str(caught.value)


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
    assert uid_of(read(manifest())) == "ea96516dd16aa611740b25c578eef1db"


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


def test_unknown_fields_are_ignored_SRC_004() -> None:
    spec = to_dict(read(manifest({"noSuchField": 1})))["spec"]
    assert "noSuchField" not in spec
    assert [c["name"] for c in spec["containers"]] == ["main"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty; wanted one v1 Pod"),
        ("- a\n", "wanted one v1 Pod, found no mapping"),
        ("apiVersion: v1\nkind: PodList\n", "line 2: kind: wanted Pod, found PodList"),
        ("apiVersion: apps/v1\nkind: Pod\n", "line 1: apiVersion: wanted v1, found apps/v1"),
        ("kind: Pod\n", "line 1: apiVersion: wanted v1, found nothing"),
        ("a: [1\n", "line 2: did not find expected ',' or ']', while parsing a flow sequence"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
            "  - name: c\n    image: 5\n",
            "line 7: spec.containers[0].image: wanted a text, found an integer",
        ),
        (
            "apiVersion: v1\nkind: Pod\nspec:\n  priority: 99999999999999999999\n",
            "line 4: spec.priority: 100000000000000000000 does not fit into 64 bits",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n",
            "line 4: spec: containers is missing",
        ),
    ],
)
def test_unreadable_manifests_say_where_SRC_004(text: str, reason: str) -> None:
    assert refusal(text) == reason


def test_a_name_is_needed_SRC_037() -> None:
    text = manifest(generateName="web-").replace("  name: web\n", "")
    assert refusal(text) == "invalid pod: name is needed for the pod"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (manifest({"containers": []}), "spec.containers: Required value"),
        (
            manifest({"restartPolicy": "Sometimes"}),
            'spec.restartPolicy: Unsupported value: "Sometimes": '
            'supported values: "Always", "OnFailure", "Never"',
        ),
        (with_container(image=""), "spec.containers[0].image: Required value"),
        (
            manifest(
                {"containers": [{"name": "a", "image": "x:1"}, {"name": "a", "image": "x:1"}]}
            ),
            'spec.containers[1].name: Duplicate value: "a"',
        ),
        (
            with_container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            with_container(livenessProbe={"exec": {"command": ["a"]}, "successThreshold": 2}),
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            with_container(
                readinessProbe={"exec": {"command": ["a"]}, "terminationGracePeriodSeconds": 1}
            ),
            "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: "
            "Forbidden: must not be set for readinessProbes",
        ),
        (
            with_container(startupProbe={"periodSeconds": 1}),
            "spec.containers[0].startupProbe: Required value: "
            "must specify a handler type: exec, httpGet, tcpSocket, grpc",
        ),
        (
            with_container(livenessProbe={"tcpSocket": {"port": "8080"}}),
            'spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: "8080": '
            "must contain at least one letter (a-z)",
        ),
        (
            with_container(livenessProbe={"httpGet": {"port": "-web"}}),
            'spec.containers[0].livenessProbe.httpGet.port: Invalid value: "-web": '
            "must not begin or end with a hyphen",
        ),
        (
            with_container(livenessProbe={"grpc": {"port": 0}}),
            "spec.containers[0].livenessProbe.grpc.port: Invalid value: 0: "
            "must be between 1 and 65535, inclusive",
        ),
        (
            with_container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            'spec.containers[0].resources.requests: Invalid value: "2": '
            "must be less than or equal to cpu limit",
        ),
        (
            with_container(ports=[{"containerPort": 70000}]),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: "
            "must be between 1 and 65535, inclusive",
        ),
        (
            manifest(
                {
                    "initContainers": [
                        {
                            "name": "i",
                            "image": "x:1",
                            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
                        }
                    ]
                }
            ),
            "spec.initContainers[0].lifecycle: Forbidden: "
            "may not be set for init containers without restartPolicy=Always",
        ),
        (
            manifest({"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]}),
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
    ],
)
def test_an_invalid_pod_is_refused_with_the_field_SRC_037(text: str, complaint: str) -> None:
    assert refusal(text) == f"invalid pod: [{complaint}]"


def volume(**source: Any) -> str:
    return manifest({"volumes": [{"name": "v", **source}]})


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (manifest({"serviceAccountName": "s"}), "serviceaccounts"),
        (manifest({"imagePullSecrets": [{"name": "s"}]}), "secrets"),
        (
            with_container(
                env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
            ),
            "secrets",
        ),
        (with_container(envFrom=[{"configMapRef": {"name": "c"}}]), "configmaps"),
        (volume(configMap={"name": "c"}), "configmaps"),
        (volume(projected={"sources": [{"secret": {"name": "s"}}]}), "secrets"),
        (
            manifest({"resourceClaims": [{"name": "r", "resourceClaimName": "x"}]}),
            "resourceclaims",
        ),
        (volume(csi={"driver": "d"}), "csidrivers (via CSI volumes)"),
        (
            volume(glusterfs={"endpoints": "e", "path": "/"}),
            "endpoints (via glusterFS volumes)",
        ),
        (volume(persistentVolumeClaim={"claimName": "c"}), "persistentvolumeclaims"),
        (
            volume(ephemeral={"volumeClaimTemplate": {"spec": {}}}),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (
            volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
            "serviceaccounts (via projected volumes)",
        ),
        (
            volume(projected={"sources": [{"clusterTrustBundle": {"path": "t"}}]}),
            "clustertrustbundles",
        ),
        (
            manifest(
                {
                    "serviceAccountName": "s",
                    "volumes": [{"name": "v", "csi": {"driver": "d"}}],
                }
            ),
            "serviceaccounts",
        ),
    ],
)
def test_static_pods_may_not_reference_api_objects_SRC_038(text: str, what: str) -> None:
    assert refusal(text) == f"static pods may not reference {what}"


@pytest.mark.parametrize(
    "source",
    [
        {"emptyDir": {}},
        {"hostPath": {"path": "/x"}},
        {"downwardAPI": {"items": []}},
        {"projected": {"sources": [{"downwardAPI": {}}]}},
        {"nfs": {"server": "s", "path": "/"}},
        {"image": {"reference": "x"}},
    ],
)
def test_local_volumes_are_allowed_SRC_038(source: dict[str, Any]) -> None:
    (kept,) = to_dict(read(volume(**source)))["spec"]["volumes"]
    assert set(kept) == {"name", *source}


FULL: dict[str, Any] = yaml.safe_load(
    manifest(
        {
            "volumes": [
                {"name": "v", "hostPath": {"path": "/x"}},
                {"name": "w", "projected": {"sources": [{"downwardAPI": {"items": []}}]}},
            ],
            "initContainers": [{"name": "i", "image": "x:1", "restartPolicy": "Always"}],
            "containers": [
                {
                    "name": "c",
                    "image": "x:1",
                    "env": [
                        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
                    ],
                    "envFrom": [],
                    "ports": [{"containerPort": 80}],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    "livenessProbe": {"httpGet": {"port": 80}},
                    "lifecycle": {"preStop": {"exec": {"command": ["a"]}}},
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                }
            ],
        },
        labels={"a": "b"},
        annotations={"c": "d"},
    )
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into `value`."""
    found = [path]
    items = list(enumerate(value)) if isinstance(value, list) else []
    for key, item in value.items() if isinstance(value, dict) else items:
        found += places(item, (*path, key))
    return found


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 10**30, 1.5, "", "x", "Ünïcode", "a\x00", [], [None], {}, {"a": 1}, [[]]]
)


@given(st.lists(st.tuples(st.sampled_from(places(FULL)[1:]), ODD), min_size=1, max_size=3))
def test_any_manifest_gives_a_pod_or_a_manifest_error_SRC_005(
    changes: list[tuple[tuple[Any, ...], Any]],
) -> None:
    value = copy.deepcopy(FULL)
    for path, odd in changes:
        with suppress(KeyError, IndexError, TypeError):
            target = value
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = copy.deepcopy(odd)
    with suppress(ManifestError):
        read(json.dumps(value))


def test_the_full_example_is_a_good_manifest() -> None:
    spec = to_dict(read(json.dumps(FULL)))["spec"]
    for kind in ("volumes", "initContainers", "containers"):
        assert [item["name"] for item in spec[kind]] == [
            item["name"] for item in FULL["spec"][kind]
        ]


JSON_POD = (
    '{\n\t"apiVersion": "v1",\n\t"kind": "Pod",\n\t"metadata": {"name": "tabs"},\n'
    '\t"spec": {"containers": [{"name": "c", "image": "localhost/busybox:1"}]}\n}\n'
)


def test_json_may_be_indented_with_tabs_SRC_004() -> None:
    assert read(JSON_POD).metadata.name == "tabs-n1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\n {apiVersion: v1, kind: Pod}", "line 2: a text that begins with a brace must be JSON"),
        (JSON_POD + '{"more": 1}', "line 7: a text that begins with a brace must be JSON: Extra"),
        (JSON_POD.replace("]}\n}", "]}\n;}"), "line 6: a text that begins with a brace must be"),
    ],
)
def test_a_text_that_begins_with_a_brace_is_json_SRC_004(text: str, reason: str) -> None:
    """Seen of kubelet 1.36.2, which reads such a text as JSON only."""
    assert refusal(text).startswith(reason)


@pytest.mark.parametrize("field", ["creationTimestamp", "deletionTimestamp"])
def test_a_time_without_a_zone_is_refused(field: str) -> None:
    """It could not be compared with others: one such pod would stop all that come with it."""
    reason = refusal(manifest(**{field: "2024-01-01T00:00:00"}))
    assert f"metadata.{field}: wanted a time with its zone" in reason
    read(manifest(**{field: "2024-01-01T00:00:00Z"}))


def test_an_active_deadline_has_at_most_31_bits_SRC_037() -> None:
    assert refusal(manifest({"activeDeadlineSeconds": 2**31})) == (
        "invalid pod: [spec.activeDeadlineSeconds: Invalid value: 2147483648: "
        "must be between 1 and 2147483647, inclusive]"
    )
    read(manifest({"activeDeadlineSeconds": 2**31 - 1}))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"labels": {"a": 1}}, "line 6: metadata.labels.a: wanted a text, found an integer"),
        ({"labels": {"a": True}}, "line 6: metadata.labels.a: wanted a text, found true or false"),
        (
            {"annotations": {"a": [1]}},
            "line 6: metadata.annotations.a: wanted a text, found a list",
        ),
        (
            {"annotations": {"a": 1.5}},
            "line 6: metadata.annotations.a: wanted a text, found a number",
        ),
    ],
)
def test_labels_and_annotations_are_texts(fields: dict[str, Any], reason: str) -> None:
    """Kubelet 1.36.2 cannot unmarshal them either."""
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n" + "".join(
        f"  {name}:\n    a: {json.dumps(value['a'])}\n" for name, value in fields.items()
    )
    assert refusal(text + "spec: {containers: [{name: c, image: i}]}\n") == reason


def test_a_label_that_is_nothing_is_empty() -> None:
    assert read(manifest(labels={"a": None})).metadata.labels == {"a": ""}
    selector = read(manifest({"nodeSelector": {"a": None}})).spec.nodeSelector
    assert selector == {"a": ""}
    assert "spec.nodeSelector.a: wanted a text" in refusal(manifest({"nodeSelector": {"a": 1}}))


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


@pytest.mark.parametrize("written", ["30.0", "3e1", "0x1e", "036", "0o36", "3_0", "30"])
def test_whole_numbers_of_yaml_may_be_written_so(written: str) -> None:
    """All accepted by kubelet 1.36.2."""
    pod = read(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n"
        f"  terminationGracePeriodSeconds: {written}\n"
        "  hostIPC: y\n  containers: [{name: c, image: i}]\n"
    )
    assert pod.spec is not None
    assert pod.spec.terminationGracePeriodSeconds == 30
    assert pod.spec.hostIPC is True


def accepted(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """The pod as JSON shows it."""
    return to_dict(read(manifest(spec, **metadata)))


def volumes(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": f"v{i}", **source} for i, source in enumerate(sources)]}


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


def test_the_node_s_name_is_validated_as_the_pod_s_SRC_033_SRC_037() -> None:
    assert "nodeName" not in str(accepted({"nodeName": "Other"})["metadata"])
    with pytest.raises(ManifestError, match=r'spec\.nodeName: Invalid value: "Node1"'):
        read(manifest(), node="Node1")


def test_the_old_name_of_a_service_account_is_a_reference_SRC_038() -> None:
    assert refusal(manifest({"serviceAccount": "a"})) == (
        "static pods may not reference serviceaccounts"
    )


def test_a_reference_without_a_name_is_none_SRC_038() -> None:
    assert accepted({"imagePullSecrets": [{}]})["spec"]["imagePullSecrets"] == [{}]


def test_fields_newer_than_kubernetes_1_36_are_unknown_SRC_004() -> None:
    main = {"name": "main", "image": "i", "volumeMounts": [{"name": "v0", "mountPath": "/v"}]}
    main["volumeMounts"][0]["bindMountOptions"] = 5
    spec = {"evictionResponders": "x", "containers": [main], **volumes({"emptyDir": {"mode": "x"}})}
    shown = accepted(spec)["spec"]
    assert "evictionResponders" not in shown
    assert "bindMountOptions" not in shown["containers"][0]["volumeMounts"][0]
    assert shown["volumes"][0]["emptyDir"] == {}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"priority": 1 << 31}, "spec.priority: 2147483648 does not fit into 32 bits"),
        (
            {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1 << 40}]}]},
            "containerPort: 1099511627776 does not fit into 32 bits",
        ),
    ],
)
def test_a_number_wider_than_its_field_is_refused_SRC_004(
    spec: dict[str, Any], reason: str
) -> None:
    assert reason in refusal(manifest(spec))


RULE = {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Die"}]}
FILE_REF = {"volumeName": "w", "path": "../x", "key": ""}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        (RULE, {"restartPolicyRules[0].action", "restartPolicyRules[0].exitCodes"}),
        (
            {"env": [{"name": "A", "valueFrom": {"fileKeyRef": FILE_REF}}]},
            {f"env[0].valueFrom.fileKeyRef.{name}" for name in ("key", "path", "volumeName")},
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.foo"}}}]},
            {"env[0].valueFrom.fieldRef.fieldPath"},
        ),
        (
            {
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {
                            "fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}
                        },
                    }
                ]
            },
            {"env[0].valueFrom.fieldRef.fieldPath"},
        ),
        ({"volumeDevices": [{"name": "v", "devicePath": ""}]}, {"volumeDevices[0].devicePath"}),
        ({"securityContext": {"procMount": "Unmasked"}}, {"securityContext.procMount"}),
        ({"resources": {"limits": {"cpu": 1, "hugepages-2Mi": "3Mi"}}}, {"limits[hugepages-2Mi]"}),
        ({"resources": {"claims": [{"name": "c"}]}}, {"resources.claims[0]"}),
    ],
)
def test_what_an_api_server_refuses_of_containers_SRC_037(
    fields: dict[str, Any], wanted: set[str]
) -> None:
    why = refusal(with_container(**fields))
    assert why.startswith("invalid pod: [")
    assert {name for name in wanted if name in why} == wanted


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({"nfs": {"server": "a", "path": "b"}}, "nfs.path"),
        ({"gitRepo": {"repository": ""}}, "gitRepo.repository"),
        ({"flocker": {}}, "flocker"),
        ({"fc": {"targetWWNs": ["a"]}}, "fc.lun"),
        ({"iscsi": {"targetPortal": "a", "iqn": "x", "lun": 256}}, "iscsi.iqn"),
        ({"quobyte": {"registry": "a", "volume": "v"}}, "quobyte.registry"),
        ({"projected": {"defaultMode": 512}}, "projected.defaultMode"),
        ({"downwardAPI": {"items": [{"path": "..a"}]}}, "downwardAPI.path"),
        ({"csi": {"driver": "A"}}, "csi.driver"),
        ({"emptyDir": {}, "hostPath": {"path": "/"}}, "hostPath: Forbidden"),
    ],
)
def test_what_an_api_server_refuses_of_volumes_SRC_037(source: dict[str, Any], field: str) -> None:
    assert f"spec.volumes[0].{field}" in refusal(manifest(volumes(source)))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"hostnameOverride": "A"}, "spec.hostnameOverride"),
        ({"serviceAccountName": "A b"}, "spec.serviceAccountName"),
        ({"hostAliases": [{"ip": "01.2.3.4"}]}, "spec.hostAliases[0].ip"),
        ({"hostAliases": [{"ip": "1.2.3.4", "hostnames": [""]}]}, "hostAliases[0].hostnames[0]"),
        ({"dnsConfig": {"options": [{}]}}, "spec.dnsConfig.options[0]"),
        ({"dnsConfig": {"searches": ["a b"]}}, "spec.dnsConfig.searches[0]"),
        ({"securityContext": {"supplementalGroupsPolicy": "x"}}, "supplementalGroupsPolicy"),
        (
            {
                "securityContext": {
                    "seccompProfile": {"type": "Unconfined", "localhostProfile": "a"}
                }
            },
            "seccompProfile.localhostProfile",
        ),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "spec.tolerations[0].effect"),
        ({"overhead": {"pods": "1"}}, "spec.overhead.limits[pods]"),
        ({"resources": {"claims": []}}, "spec.resources.claims"),
    ],
)
def test_what_an_api_server_refuses_of_pods_SRC_037(spec: dict[str, Any], field: str) -> None:
    why = refusal(manifest(spec))
    assert why.startswith("invalid pod: [")
    assert field in why


def test_what_may_be_missing_is_nothing_SRC_004() -> None:
    get = {"httpGet": {"port": 80, "httpHeaders": [{"name": "a"}]}}
    hooks = {"preStop": {"sleep": {}}, "postStart": get}
    main = {"name": "main", "image": "i", "lifecycle": hooks}
    shown = accepted({"containers": [main]})["spec"]["containers"][0]["lifecycle"]
    assert shown["preStop"]["sleep"] == {"seconds": 0}
    assert shown["postStart"]["httpGet"]["httpHeaders"] == [{"name": "a", "value": ""}]
