"""A kubelet in its own process, in real time: refkubelet, or any kubelet binary by path.

It is started with a KubeletConfiguration file and a runtime endpoint, watched through its healthz
port and read through its read-only port. What must never happen here: a process outlives its case.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import aiohttp

from conformance.features import Feature
from conformance.harness.kubelets.base import KubeletDied, NodePaths
from conformance.harness.kubelets.mounts import unmount_below
from conformance.harness.kubelets.ports import Ports

START_WITHIN_S: Final = 30.0
STOP_WITHIN_S: Final = 15.0
ASKS_WITHIN_S: Final = 15.0
"""A kubelet asks the API server for its pods some seconds after it is healthy; one that cannot
reach it never does."""
LAST_WORDS_LINES: Final = 15
ROOTLESS: Final = "KubeletInUserNamespace"  # lets a kubelet do without the kernel's log (EVIC-124)
SYSTEM_BUS: Final = "DBUS_SYSTEM_BUS_ADDRESS"
PORTS: Final = Ports()
"""Of this run."""


# Kubelets that run side by side must not share what upstream keeps in fixed places: the cgroup
# /kubepods, where each kills what it does not know (CG-043), and the directories of plug-ins and
# certificates. A case that looks at cgroups has a place of its own for them: `with_own_cgroups`.
SIDE_BY_SIDE: Final = MappingProxyType(
    {
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "cgroupDriver": "cgroupfs",
        "contentType": "application/json",  # the fake API server speaks nothing else
    }
)
OF_CGROUPS: Final = ("cgroupsPerQOS", "enforceNodeAllocatable")


@dataclass(frozen=True, slots=True)
class Program:
    """How to start a kubelet: the words before the common flags, and what it can do.

    `own_flags`: further flags that take a directory below the case's own, by flag name.
    `config`: configuration fields that the cases do not choose. `device_plugins`: where its device
    plugins listen, below the case's directory. `fixed_plugins`: it has one place for them, whatever
    its flags say. `environment`: variables beside those of this process.
    """

    command: tuple[str, ...]
    features: frozenset[Feature]
    own_flags: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    device_plugins: str = "kubelet/device-plugins"
    fixed_plugins: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


REFKUBELET: Final = Program(
    (sys.executable, "-c", "import sys, refkubelet.cli; sys.exit(refkubelet.cli.main())", "run"),
    frozenset({Feature.API, Feature.STATUS, Feature.PRESSURE, Feature.RESTART}),
    config=SIDE_BY_SIDE,
)


def with_own_cgroups(program: Program, cgroup_root: str) -> Program:
    """The same, making its cgroups below that group, which is there."""
    fixed = {k: v for k, v in program.config.items() if k not in OF_CGROUPS}
    return replace(program, config={**fixed, "cgroupRoot": cgroup_root})


def external(path: Path) -> Program:
    """A kubelet binary that takes the upstream flags."""
    return Program(
        (str(path),),
        frozenset({Feature.API, Feature.STATUS, Feature.PRESSURE, Feature.RESTART}),
        own_flags={"--cert-dir": "pki", "--volume-plugin-dir": "volume-plugins"},
        config=SIDE_BY_SIDE,
        device_plugins="device-plugins",
        fixed_plugins=Path("/var/lib/kubelet/device-plugins"),
    )


_OWN_PLUGINS: Final = (
    'mkdir -p "$1" "$2" && mount --bind "$2" "$1" && shift 2 && exec "$@"'  # then the kubelet
)


def with_own_plugins(program: Program, directory: Path) -> Program:
    """The same program; where its place for plugins is fixed, it sees `directory` there, through a
    mount that nobody else sees."""
    if program.fixed_plugins is None:
        return program
    directory.mkdir(parents=True, exist_ok=True)
    places = (str(program.fixed_plugins), str(directory))
    command = ("unshare", "--mount", "sh", "-c", _OWN_PLUGINS, "sh", *places, *program.command)
    return replace(program, command=command)


def _can_read_kernel_log() -> bool:
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def with_bus(program: Program, address: str) -> Program:
    """The same, on a system bus of its own."""
    return replace(program, environment={**program.environment, SYSTEM_BUS: address})


class ProcessKubelet:
    """`Kubelet` over a process. `kubeconfig`: the API server's, or None for standalone."""

    def __init__(
        self,
        program: Program,
        paths: NodePaths,
        endpoint: str,
        *,
        node_name: str,
        kubeconfig: Path | None,
        pods_asked: Callable[[], int] | None = None,
    ) -> None:
        self.features = program.features
        self._program = program
        self._paths = paths
        self._endpoint = endpoint
        self._node_name = node_name
        self._kubeconfig = kubeconfig
        self._pods_asked = pods_asked
        self._process: asyncio.subprocess.Process | None = None
        self._http: aiohttp.ClientSession | None = None
        self._read_only_port = 0

    @property
    def _log(self) -> Path:
        return self._paths.base / "kubelet.log"

    async def start(self, config: Mapping[str, Any]) -> None:
        """Start it; returns when healthz and /pods answer, and, as far as it can, when it has asked
        the API server for its pods. Raises KubeletDied."""
        if self._process is not None:
            raise RuntimeError("the kubelet runs already")
        self._read_only_port, healthz, main = PORTS.take(3)
        ports = {
            "address": "127.0.0.1",
            "port": main,
            "readOnlyPort": self._read_only_port,
            "healthzPort": healthz,
        }
        fixed = {**self._program.config, **ports, "containerRuntimeEndpoint": self._endpoint}
        whole = {**config, **fixed}
        if not _can_read_kernel_log():
            whole["featureGates"] = {**whole.get("featureGates", {}), ROOTLESS: True}
        self._paths.config.write_text(json.dumps(whole, indent=1))
        asked = self._pods_asked() if self._pods_asked else 0
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command(),
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **self._program.environment},
            )
        await self._wait_healthy(healthz)
        await self._wait_asked(asked)

    def _command(self) -> list[str]:
        command = [
            *self._program.command,
            f"--config={self._paths.config}",
            f"--root-dir={self._paths.root}",
            f"--container-runtime-endpoint={self._endpoint}",
            f"--hostname-override={self._node_name}",
        ]
        for flag, directory in self._program.own_flags.items():
            command.append(f"{flag}={self._paths.base / directory}")
        if self._kubeconfig is not None:
            command.append(f"--kubeconfig={self._kubeconfig}")
        return command

    async def _wait_healthy(self, port: int) -> None:
        try:
            async with asyncio.timeout(START_WITHIN_S):
                for url in (f":{port}/healthz", f":{self._read_only_port}/pods"):
                    while not await self._answers(url):
                        self._check_alive()
                        await asyncio.sleep(0.1)
        except TimeoutError:
            await self.kill()
            raise KubeletDied(
                "the kubelet did not answer on its healthz and its read-only port within "
                f"{START_WITHIN_S:g} s:\n"
                f"{self._last_words()}"
            ) from None

    async def _wait_asked(self, before: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ASKS_WITHIN_S):
                while self._pods_asked is not None and self._pods_asked() == before:
                    self._check_alive()
                    await asyncio.sleep(0.1)

    async def _answers(self, place: str) -> bool:
        try:
            async with self._session().get(f"http://127.0.0.1{place}") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10))
        return self._http

    def _check_alive(self) -> None:
        if self._process is not None and self._process.returncode is not None:
            raise KubeletDied(
                f"the kubelet ended with exit code {self._process.returncode}:\n"
                f"{self._last_words()}"
            )

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-LAST_WORDS_LINES:])

    async def stop(self) -> None:
        """SIGTERM; SIGKILL when it does not end in time."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """SIGKILL."""
        await self._end(signal.SIGKILL)

    async def _end(self, with_signal: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            raise RuntimeError("the kubelet does not run")
        await self._close_session()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(with_signal)
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _close_session(self) -> None:
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def close(self) -> None:
        """End whatever still runs, and undo its mounts."""
        if self._process is not None:
            await self.kill()
        await self._close_session()
        await unmount_below(self._paths.base)

    async def pods(self) -> Sequence[dict[str, Any]]:
        """`GET /pods` on the read-only port; nothing while the kubelet is stopped."""
        if self._process is None:
            return []
        self._check_alive()
        listed = await self._get("/pods")
        return list(listed.get("items") or [])

    async def summary(self) -> dict[str, Any]:
        """`GET /stats/summary` on the read-only port."""
        self._check_alive()
        return dict(await self._get("/stats/summary"))

    async def _get(self, path: str) -> Any:
        url = f"http://127.0.0.1:{self._read_only_port}{path}"
        try:
            async with self._session().get(url) as answer:
                return await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError) as error:
            self._check_alive()
            raise KubeletDied(f"GET {url}: {error!r}\n{self._last_words()}") from None

    async def pod_resources(self, method: str, **fields: str) -> Any:
        """The answer of the socket below the kubelet's root directory."""
        import grpc.aio
        from criapi.podresources import api_pb2, api_pb2_grpc

        service = api_pb2.DESCRIPTOR.services_by_name["PodResourcesLister"]
        request = getattr(api_pb2, service.methods_by_name[method].input_type.name)(**fields)
        socket_path = self._paths.root / "pod-resources" / "kubelet.sock"
        options = [("grpc.default_authority", "localhost")]
        async with grpc.aio.insecure_channel(f"unix:{socket_path}", options=options) as channel:
            stub = api_pb2_grpc.PodResourcesListerStub(channel)
            try:
                return await getattr(stub, method)(request, timeout=10)
            except grpc.aio.AioRpcError as error:
                raise LookupError(error.details()) from None
