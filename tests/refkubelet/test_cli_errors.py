"""`refkubelet run` with mistakes in it: one error, exit code 2, no traceback; and its manners."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from simclock import RealClock

HEAD = (
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    "failCgroupV1: false\nfailSwapOn: false\ncgroupsPerQOS: false\nenforceNodeAllocatable: []\n"
    "authentication: {webhook: {enabled: false}, anonymous: {enabled: true}}\n"
    "authorization: {mode: AlwaysAllow}\n"
    "address: 127.0.0.1\n"
)
ANOTHER_SOCKET = (
    "  give --container-runtime-endpoint the socket of a runtime that serves runtime.v1 "
    "(containerd 1.6 or newer, CRI-O, fakecri)"
)
OTHER_SERVER = """
import contextlib, os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
held = []
while True:
    held.append(listener.accept()[0])
    with contextlib.suppress(OSError):
        held[-1].sendall(os.fsencode(sys.argv[2]))
"""


def accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(str(path)) == 0


def wait_until(condition: Callable[[], object], limit_s: float = 200) -> None:
    clock = RealClock()
    end_s = clock.monotonic_s() + limit_s
    while not condition():
        assert clock.monotonic_s() < end_s, "not in time"
        select.select([], [], [], 0.05)


def refkubelet(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; from refkubelet.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "kubelet.yaml"
    file.write_text(HEAD)
    return file


def complaint(*arguments: str | Path) -> str:
    done = refkubelet("run", *arguments)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr.rstrip("\n")


def test_help_is_fast_and_needs_no_heavy_imports() -> None:
    program = (
        "import sys; from refkubelet.cli import _parser; _parser(); "
        "print(sorted({'grpc', 'aiohttp', 'lightkube', 'yaml', 'msgspec'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
    assert "--container-runtime-endpoint" in refkubelet("run", "--help").stdout


def test_an_unknown_field_is_told_and_does_not_end_the_start_CFG_002(config: Path) -> None:
    config.write_text(HEAD + "fileChekFrequency: 3s\n")
    endpoint = ("--container-runtime-endpoint", "unix:///nowhere.sock")
    warning, *later = complaint("--config", config, *endpoint).splitlines()
    assert warning.endswith(
        f": {config}:10: fileChekFrequency: unknown field, without effect; "
        "did you mean fileCheckFrequency?"
    )
    assert any("cannot connect to the runtime at unix:///nowhere.sock" in line for line in later)


@pytest.mark.parametrize("address", ["", "address: 0.0.0.0\n", "address: '::'\n"])
def test_a_main_port_open_to_everybody_is_refused_SRV_011(config: Path, address: str) -> None:
    config.write_text(HEAD.replace("address: 127.0.0.1\n", address))
    shown = "::" if "::" in address else "0.0.0.0"
    assert complaint("--config", config) == (
        "refkubelet: port: with authentication.anonymous.enabled and authorization.mode "
        f"AlwaysAllow every client that reaches {shown}:10250 could run commands in all pods\n"
        "  set one of both otherwise, or address: 127.0.0.1 (or enableServer: false) in the "
        "configuration, or give --insecure-server to listen there all the same"
    )


def test_who_says_so_has_it_open_SRV_011(config: Path) -> None:
    config.write_text(HEAD.replace("address: 127.0.0.1\n", ""))
    text = complaint(
        *("--config", config, "--insecure-server"),
        *("--container-runtime-endpoint", "unix:///nowhere.sock"),
    )
    assert text.startswith("refkubelet: cannot connect to the runtime")  # that comes later


def test_a_missing_config_file() -> None:
    assert complaint("--config", "/nowhere.yaml") == (
        "refkubelet: cannot read the configuration file /nowhere.yaml: no such file or directory"
    )


def test_an_unknown_eviction_signal_EVIC_001(config: Path) -> None:
    config.write_text(HEAD + "evictionHard: {memory.free: 100Mi}\n")
    assert complaint("--config", config) == (
        f"refkubelet: {config}: unsupported eviction signal memory.free"
    )


def test_a_socket_that_does_not_exist(config: Path, tmp_path: Path) -> None:
    endpoint = f"unix://{tmp_path}/no.sock"
    assert complaint("--config", config, "--container-runtime-endpoint", endpoint) == (
        f"refkubelet: cannot connect to the runtime at {endpoint}: no such file\n"
        f"  start one: fakecri serve --listen {endpoint}"
    )


def test_a_socket_of_images_that_does_not_exist(config: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.bind(str(tmp_path / "cri.sock"))
        runtime.listen()
        text = complaint(
            *("--config", config),
            *("--container-runtime-endpoint", f"unix://{tmp_path}/cri.sock"),
            *("--image-service-endpoint", f"unix://{tmp_path}/no.sock"),
        )
    assert text.startswith(
        f"refkubelet: cannot connect to the runtime at unix://{tmp_path}/no.sock: no such file\n"
    )


def test_a_file_that_is_no_socket(config: Path) -> None:
    text = complaint("--config", config, "--container-runtime-endpoint", f"unix://{config}")
    assert text == (
        f"refkubelet: cannot connect to the runtime at unix://{config}: it is not a socket\n"
        + ANOTHER_SOCKET
    )


def test_a_socket_nobody_listens_on(config: Path, tmp_path: Path) -> None:
    path = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
    text = complaint("--config", config, "--container-runtime-endpoint", f"unix://{path}")
    assert text == (
        f"refkubelet: cannot connect to the runtime at unix://{path}: nobody listens there\n"
        f"  start one: fakecri serve --listen unix://{path}"
    )


@pytest.mark.parametrize(
    ("greeting", "detail"),
    [
        (b"", "connection attempt timed out before receiving SETTINGS frame"),
        (b"220 mail.example.org ESMTP\r\n", "Failed parsing HTTP/2"),
    ],
    ids=["never answers", "speaks another protocol"],
)
def test_a_socket_that_is_no_cri(
    config: Path, tmp_path: Path, greeting: bytes, detail: str
) -> None:
    """Whatever holds the socket already, the message does not say to start a runtime there."""
    path = tmp_path / "other.sock"
    with subprocess.Popen([sys.executable, "-c", OTHER_SERVER, str(path), greeting]) as server:
        try:
            wait_until(lambda: path.exists() and accepts(path))
            text = complaint("--config", config, "--container-runtime-endpoint", f"unix://{path}")
        finally:
            server.kill()
    first, _, hint = text.partition("\n")
    assert first.startswith(
        f"refkubelet: cannot connect to the runtime at unix://{path}: what listens there does not "
        f"speak gRPC, or has just ended ({detail}"
    )
    assert hint == ANOTHER_SOCKET


def test_an_endpoint_of_another_kind(config: Path) -> None:
    text = complaint("--config", config, "--container-runtime-endpoint", "tcp://localhost:1")
    assert "wanted unix:///path/to/socket" in text


def test_a_missing_kubeconfig(config: Path) -> None:
    assert complaint("--config", config, "--kubeconfig", "/nowhere.conf") == (
        "refkubelet: kubeconfig /nowhere.conf: no such file"
    )


@pytest.mark.parametrize("content", ["- not\n- a kubeconfig\n", "", "foo: bar\n"])
def test_a_kubeconfig_that_is_none(config: Path, tmp_path: Path, content: str) -> None:
    file = tmp_path / "kube.conf"
    file.write_text(content)
    assert complaint("--config", config, "--kubeconfig", file) == (
        f"refkubelet: kubeconfig {file}: not a kubeconfig: "
        "wanted a mapping with clusters, users, contexts and current-context"
    )


def test_the_chatter_of_grpc_is_off_unless_the_user_wants_it() -> None:
    program = (
        "import os; from refkubelet.cli import main; main(['run', '--config', '/nowhere.yaml']); "
        "print(os.environ['GRPC_VERBOSITY'])"
    )
    for given, wanted in (({}, "ERROR"), ({"GRPC_VERBOSITY": "DEBUG"}, "DEBUG")):
        env = {name: text for name, text in os.environ.items() if name != "GRPC_VERBOSITY"} | given
        done = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{wanted}\n"


def test_an_unknown_flag_is_refused() -> None:
    done = refkubelet("run", "--confg", "x")
    assert done.returncode == 2
    assert "unrecognized arguments: --confg x" in done.stderr or "--config" in done.stderr


def test_without_a_command_the_usage_is_shown() -> None:
    done = refkubelet()
    assert done.returncode == 2
    assert "run the kubelet until SIGTERM" in done.stdout


def test_a_mistake_in_a_drop_in_CFG_003(config: Path, tmp_path: Path) -> None:
    drop_ins = tmp_path / "d"
    drop_ins.mkdir()
    (drop_ins / "a.conf").write_text(HEAD + "maxPods: x\n")
    assert complaint("--config", config, "--config-dir", drop_ins) == (
        f"refkubelet: {drop_ins}/a.conf:10: maxPods: wanted an integer of 32 bits, got the text 'x'"
    )


def test_flags_of_fields_are_told_to_be_deprecated_CFG_010(config: Path) -> None:
    words = ("--max_pods=x", "--provider-id", "a", "--runtime-cgroups=/a", "--max-pods=y")
    *warnings, first, second = complaint("--config", config, *words).splitlines()
    assert [line.partition(" W ")[2] for line in warnings] == [
        "refkubelet.cli: Flag --max-pods has been deprecated, This parameter should be set via the "
        "config file specified by the kubelet's --config flag.",
        "refkubelet.cli: --runtime-cgroups: accepted, but refkubelet does not act on it: the "
        "runtime's own cgroup is not looked at",
    ]
    assert first == "refkubelet: --max-pods x: wanted an integer of 32 bits"
    assert second == "--max-pods y: wanted an integer of 32 bits"


def test_labels_that_no_kubelet_may_set_CFG_011(config: Path) -> None:
    text = complaint("--config", config, "--node-labels", "node-role.kubernetes.io/x=")
    assert text.startswith(
        "refkubelet: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: "
        "[node-role.kubernetes.io/x]\n"
    )


def test_mistakes_in_login_plugins_are_told_together_CFG_014(config: Path, tmp_path: Path) -> None:
    flag = "--image-credential-provider-config"
    told = complaint("--config", config, flag, tmp_path / "gone.yaml")
    assert told.splitlines() == [
        f"refkubelet: --image-credential-provider-bin-dir is missing: with {flag} it names the "
        "directory of their programs",
        f"{flag} {tmp_path}/gone.yaml: cannot be read: no such file or directory",
    ]
