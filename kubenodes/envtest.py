"""etcd and kube-apiserver of envtest, and controllers beside them: found, started, stopped.

`setup-envtest use -p env` and its like say where the programs are, in KUBEBUILDER_ASSETS. They run
in real time, or in that of a clock page, which jumps. What must never happen: a program or a
directory outlives the block.
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fakecri.serving.handed_over import pause
from fakekubeapi.access.certificates import CertificateAuthority
from fakekubeapi.access.serving import server_pem
from fakekubeapi.cli import kubeconfig as kubeconfig_text
from simclock import RealClock, unguessable

if TYPE_CHECKING:
    from simclock.timewarp import TimePage

VARIABLE: Final = "KUBEBUILDER_ASSETS"
DEFAULT: Final = Path("/usr/local/kubebuilder/bin")
"""Where setup-envtest has put them since ever, if the variable is not set."""
PROGRAMS: Final = ("etcd", "kube-apiserver")
CONTROLLERS: Final = ("kube-controller-manager", "kube-scheduler")
"""envtest does not bring these: who wants them puts them beside the others."""
STARTED_WITHIN_S: Final = 60.0
STOPPED_WITHIN_S: Final = 15.0
_LOOK_S: Final = 0.05


class EnvtestError(Exception):
    """The programs are not there, or do not start; the text says which, why, and what to do."""


def assets(environment: Mapping[str, str], programs: Sequence[str] = PROGRAMS) -> Path:
    """The directory of the programs. Raises EnvtestError when one is not there."""
    directory = Path(environment.get(VARIABLE) or DEFAULT)
    for program in programs:
        if not os.access(directory / program, os.X_OK):
            raise EnvtestError(
                f"{program} is not in {directory}: set {VARIABLE} to the directory with "
                f"{', '.join(programs)}; `setup-envtest use -p path` prints that of "
                f"{' and '.join(PROGRAMS)}"
            )
    return directory


@contextmanager
def control_plane(page: TimePage | None = None, *, controllers: bool = False) -> Iterator[Path]:
    """A kube-apiserver with an etcd of its own on ports of 127.0.0.1, until the block ends;
    `controllers`: kube-controller-manager and kube-scheduler, too. `page`: they live in its time;
    None: in real time. Gives the kubeconfig of a member of system:masters. Raises EnvtestError."""
    programs = assets(os.environ, (*PROGRAMS, *CONTROLLERS) if controllers else PROGRAMS)
    prefix = page.prefix if page is not None else ()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="envtest-")))

        def start(command: Sequence[str], is_up: Callable[[], bool]) -> None:
            stack.enter_context(_program(prefix, command, directory, is_up))

        etcd_port, peer_port, port = _free_ports(3)
        etcd = f"http://127.0.0.1:{etcd_port}"
        start(_etcd(programs, directory, etcd, peer_port), lambda: _up(etcd))
        token, url = unguessable(16).hex(), f"https://127.0.0.1:{port}"
        authority = CertificateAuthority.make(RealClock().now())
        _write_files(directory, token, authority)
        trusts = ssl.create_default_context(cadata=authority.root_pem)
        api_server = _api_server(programs, directory, etcd, port)
        start(api_server, lambda: _ready(f"{url}/readyz", token, trusts))
        kubeconfig = directory / "kubeconfig"
        text = kubeconfig_text(url, authority.root_pem).replace("of-nobody", token)
        kubeconfig.write_text(text)
        for command in _controllers(programs, directory) if controllers else ():
            start(command, lambda: True)
        yield kubeconfig


def _write_files(directory: Path, token: str, authority: CertificateAuthority) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    (directory / "accounts.key").write_bytes(key)
    pem = server_pem(authority, ["127.0.0.1"], RealClock().now())
    (directory / "server.pem").write_text(pem)
    (directory / "tokens").write_text(f'{token},envtest,envtest,"system:masters"\n')


def _etcd(programs: Path, directory: Path, url: str, peer_port: int) -> list[str]:
    peer = f"http://127.0.0.1:{peer_port}"
    return [
        str(programs / "etcd"),
        f"--data-dir={directory}/etcd",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
    ]


def _api_server(programs: Path, directory: Path, etcd: str, port: int) -> list[str]:
    return [
        str(programs / "kube-apiserver"),
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={directory}",
        f"--tls-cert-file={directory}/server.pem",
        f"--tls-private-key-file={directory}/server.pem",
        f"--token-auth-file={directory}/tokens",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://127.0.0.1",
        f"--service-account-key-file={directory}/accounts.key",
        f"--service-account-signing-key-file={directory}/accounts.key",
    ]


def _controllers(programs: Path, directory: Path) -> list[list[str]]:
    """The commands of the controller manager and of the scheduler; they serve no ports."""
    for_all = [
        f"--kubeconfig={directory}/kubeconfig",
        "--leader-elect=false",
        "--secure-port=0",
    ]
    manager, scheduler = (str(programs / name) for name in CONTROLLERS)
    accounts = f"--service-account-private-key-file={directory}/accounts.key"
    return [[manager, *for_all, accounts], [scheduler, *for_all]]


@contextmanager
def _program(
    prefix: Sequence[str], command: Sequence[str], directory: Path, is_up: Callable[[], bool]
) -> Iterator[None]:
    """The program runs, and is up, inside the block. Raises EnvtestError with the end of its log
    when it ends before, or is not up in time."""
    name = Path(command[0]).name
    log = directory / f"{name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen([*prefix, *command], cwd=directory, stdout=file, stderr=file)
    try:
        for _ in range(round(STARTED_WITHIN_S / _LOOK_S)):
            if process.poll() is not None:
                raise EnvtestError(f"{command[0]} ended at its start: {_end_of(log)}")
            if is_up():
                break
            pause(_LOOK_S)
        else:
            raise EnvtestError(
                f"{command[0]} is not ready after {STARTED_WITHIN_S:g} s: {_end_of(log)}"
            )
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace").strip()[-500:] or "it has logged nothing"


def _up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5):
            return True
    except (OSError, ValueError):
        return False


def _ready(url: str, token: str, trusts: ssl.SSLContext) -> bool:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=5, context=trusts):
            return True
    except OSError:
        return False


def _free_ports(count: int) -> list[int]:
    """So many ports that are free now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
