"""The config of CreateContainer: what devices add, and what a restarted kubelet reads in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kubecri.v1 import api_pb2 as cri
from pods import DELETED, container, make_pod

from refkubelet.container_manager.devices.types import ContainerSettings, DeviceMount, DeviceNode
from refkubelet.cri.records import ImageRecord
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.container import (
    ContainerConfigError,
    RunContainerOptions,
    StartSpec,
    container_annotations,
    container_config,
)
from refkubelet.kuberuntime.config.sandbox import dotted
from refkubelet.model.hashes import container_hash

OPTIONS = RuntimeOptions(root_dir=Path("/r"), pod_logs_dir=Path("/l"), node_name="n1")


def config_of(main: dict[str, Any], run: RunContainerOptions, attempt: int = 0) -> Any:
    pod = make_pod(main)
    start = StartSpec(
        pod.spec.containers[0], attempt, ImageRecord("sha256:1", 1), "sha256:1", run=run
    )
    return container_config(start, pod, OPTIONS)


def test_devices_add_their_settings_CG_084() -> None:
    settings = ContainerSettings(
        mounts=(DeviceMount("/h", "/c", read_only=True),),
        devices=(DeviceNode("/dev/a", "/dev/b", "rw"), DeviceNode("/dev/c", "/dev/d", "m")),
        annotations={"of": "device", "io.kubernetes.container.restartCount": "9"},
        cdi_devices=("example.com/gpu=0",),
    )
    own = cri.Mount(container_path="/own", host_path="/own")
    made = config_of(container("main"), RunContainerOptions(mounts=(own,), devices=settings), 2)
    assert list(made.devices) == [
        cri.Device(host_path="/dev/a", container_path="/dev/b", permissions="rw"),
        cri.Device(host_path="/dev/c", container_path="/dev/d", permissions="m"),
    ]
    assert list(made.mounts) == [
        cri.Mount(host_path="/h", container_path="/c", readonly=True),
        own,
    ]
    assert list(made.CDI_devices) == [cri.CDIDevice(name="example.com/gpu=0")]
    assert made.annotations["of"] == "device"
    assert made.annotations["io.kubernetes.container.restartCount"] == "2"


def test_fields_come_from_the_spec_LIFE_136() -> None:
    main = container(
        "main",
        image="app:1",
        command=["sh", "$(A)"],
        args=["$(B)", "$$(A)"],
        workingDir="/w",
        stdin=True,
        stdinOnce=True,
        tty=True,
    )
    made = config_of(main, RunContainerOptions(variables={"A": "a", "E": "\udcff"}), 3)
    assert made.metadata == cri.ContainerMetadata(name="main", attempt=3)
    assert made.image == cri.ImageSpec(image="sha256:1", user_specified_image="app:1")
    assert (list(made.command), list(made.args)) == (["sh", "a"], ["$(B)", "$(A)"])
    assert made.working_dir == "/w"
    assert list(made.envs) == [
        cri.KeyValue(key="A", value=b"a"),
        cri.KeyValue(key="E", value=b"\xff"),
    ]
    assert made.log_path == "main/3.log"
    assert (made.stdin, made.stdin_once, made.tty) == (True, True, True)
    assert dict(made.labels) == {
        "io.kubernetes.container.name": "main",
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": "uid-web",
    }


def test_what_a_spec_does_not_say_is_empty_LIFE_136() -> None:
    made = config_of(container("main"), RunContainerOptions())
    assert (list(made.command), list(made.args), made.working_dir) == ([], [], "")
    assert (made.stdin, made.stdin_once, made.tty) == (False, False, False)


def test_what_cannot_be_written_keeps_the_container_waiting_LIFE_141() -> None:
    with pytest.raises(ContainerConfigError, match="out of range"):
        config_of(container("main"), RunContainerOptions(), 1 << 32)


PORTS = [
    {"containerPort": 80, "protocol": "TCP"},
    {"hostIP": "::1", "protocol": "UDP", "containerPort": 53, "hostPort": 5353, "name": "dns"},
]


def test_a_restarted_kubelet_knows_a_container_by_its_annotations_LIFE_136() -> None:
    hook = {"preStop": {"exec": {"command": ["x"]}}}
    pod = make_pod(
        container(
            "main", ports=PORTS, lifecycle=hook, terminationMessagePolicy="FallbackToLogsOnError"
        ),
        container("bare", terminationMessagePath=""),
        meta=DELETED,
        terminationGracePeriodSeconds=0,
    )
    main, bare = pod.spec.containers
    assert container_annotations(main, pod, 7) == {
        "io.kubernetes.container.hash": container_hash(main),
        "io.kubernetes.container.restartCount": "7",
        "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        "io.kubernetes.container.terminationMessagePolicy": "FallbackToLogsOnError",
        "io.kubernetes.pod.deletionGracePeriod": "5",
        "io.kubernetes.pod.terminationGracePeriod": "0",
        "io.kubernetes.container.preStopHandler": '{"exec":{"command":["x"]}}',
        "io.kubernetes.container.ports": (
            '[{"containerPort":80,"protocol":"TCP"},{"name":"dns","hostPort":5353,'
            '"containerPort":53,"protocol":"UDP","hostIP":"::1"}]'
        ),
    }
    assert json.loads(container_annotations(main, pod, 7)["io.kubernetes.container.ports"]) == PORTS
    kept = make_pod(container("bare", terminationMessagePath="", lifecycle={}))
    assert container_annotations(kept.spec.containers[0], kept, 0) == {
        "io.kubernetes.container.hash": container_hash(bare),
        "io.kubernetes.container.restartCount": "0",
        "io.kubernetes.container.terminationMessagePath": "",
        "io.kubernetes.container.terminationMessagePolicy": "File",
    }


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("net.ipv4.tcp_syncookies", "net.ipv4.tcp_syncookies"),
        ("net.ipv4.conf.eno2/100.rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
        ("net/ipv4/conf/eno2.100/rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
        ("plain", "plain"),
    ],
)
def test_sysctls_have_dots_LIFE_134(written: str, shown: str) -> None:
    assert dotted(written) == shown
