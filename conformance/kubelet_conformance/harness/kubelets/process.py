"""A kubelet in its own process, in real time: refkubelet, or any kubelet binary by path.

It is started with a KubeletConfiguration file and a runtime endpoint, watched through its healthz
port and read through its read-only port. No process outlives its case.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
import grpc.aio
from kubecri.podresources import api_pb2, api_pb2_grpc
from kubecri.podresources_v1alpha1 import api_pb2 as alpha
from kubecri.podresources_v1alpha1 import api_pb2_grpc as alpha_grpc
from yarl import URL

from kubelet_conformance.harness.kubelets import certificates
from kubelet_conformance.harness.kubelets.base import (
    HEALTHZ,
    MAIN,
    HttpAnswer,
    HttpRequest,
    KubeletDied,
    NodePaths,
)
from kubelet_conformance.harness.kubelets.clients import client_context
from kubelet_conformance.harness.kubelets.last_words import last_words, says_that_it_ends
from kubelet_conformance.harness.kubelets.mounts import mounted_below, unmount_below
from kubelet_conformance.harness.kubelets.ports import Ports
from kubelet_conformance.harness.kubelets.program import Program
from kubelet_conformance.harness.kubelets.watches import require_watches

START_WITHIN_S: Final = 30.0
STOP_WITHIN_S: Final = 15.0
ASKS_WITHIN_S: Final = 15.0
"""A kubelet asks the API server for its pods within some seconds after it is healthy, or never, if
it cannot reach the server."""
SUMMARY_WITHIN_S: Final = 20.0
SUMMARY_AGAIN_S: Final = 0.5
ANSWER_WITHIN_S: Final = 60.0
LOG_BYTES: Final = 2_000_000
"""What is read of a log that a failure shows a part of."""
MET: Final = "kubelet.sock: bind: address already in use"
MEETINGS: Final = 3
"""How often a kubelet may meet another at the place for device plugins."""
ROOTLESS: Final = "KubeletInUserNamespace"  # lets a kubelet do without the kernel's log (EVIC-124)
PORTS: Final = Ports()
"""The ports of the kubelets of this run."""


class _NoAnswer(KubeletDied):
    """The kubelet answers, but not with what it was asked for."""


def _can_read_kernel_log() -> bool:
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def _has_ended(pid: int) -> bool:
    """Whether a child has ended that asyncio has not waited for yet; it still can."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


class ProcessKubelet:
    """`Kubelet` over a process.

    `kubeconfig`: that of the API server, None for a kubelet without one. `pods_asked`: how many
    requests for pods the API server has answered. `patience`: a factor on how long it may take to
    start and to end.
    """

    def __init__(
        self,
        program: Program,
        paths: NodePaths,
        endpoint: str,
        *,
        node_name: str,
        kubeconfig: Path | None,
        pods_asked: Callable[[], int] | None = None,
        patience: float = 1.0,
    ) -> None:
        self._program = program
        self._paths = paths
        self._endpoint = endpoint
        self._node_name = node_name
        self._kubeconfig = kubeconfig
        self._pods_asked = pods_asked
        self._patience = patience
        self._process: asyncio.subprocess.Process | None = None
        self._http: aiohttp.ClientSession | None = None
        self._read_only_port = self._main_port = self._healthz_port = 0
        self._starts = False
        """Whether it is about to start, and does not answer yet."""
        self._log_begins = 0
        """Where in the log file the present start begins, in bytes."""
        self._mounts_before = mounted_below(paths.base)

    @property
    def _log(self) -> Path:
        return self._paths.base / "kubelet.log"

    async def start(self, config: Mapping[str, Any], flags: Sequence[str] = ()) -> None:
        """Start it; returns when healthz and /pods answer and, if it can reach the API server, when
        it has asked there for its pods. Raises KubeletDied, and MachineLacks when this machine
        cannot run one now.

        Kubelets have one place for the socket of device plugins, whatever their directories: one
        that meets another there at its start ends, and is started again.
        """
        if self._process is not None:
            raise RuntimeError("the kubelet runs already")
        self._starts = True
        try:
            await self._start_again_where_met(config, flags)
        finally:
            self._starts = False

    async def _start_again_where_met(self, config: Mapping[str, Any], flags: Sequence[str]) -> None:
        for _ in range(MEETINGS):
            try:
                await self._start(config, flags)
            except KubeletDied as died:
                if MET not in str(died):
                    raise
                await self.kill()
            else:
                return
        await self._start(config, flags)

    async def _start(self, config: Mapping[str, Any], flags: Sequence[str]) -> None:
        self._read_only_port, healthz, main = PORTS.take(3)
        self._main_port, self._healthz_port = main, healthz
        ports = {
            "address": "127.0.0.1",
            "port": main,
            "readOnlyPort": self._read_only_port,
            "healthzPort": healthz,
        }
        fixed = {**self._program.config, **ports, "containerRuntimeEndpoint": self._endpoint}
        whole = {**self._program.defaults, **config, **fixed}
        if not _can_read_kernel_log():
            whole["featureGates"] = {**whole.get("featureGates", {}), ROOTLESS: True}
        self._paths.config.write_text(json.dumps(whole, indent=1))
        pods_before = self._pods_asked() if self._pods_asked else 0
        if self._program.prepare is not None:
            self._program.prepare()
        if self._program.certificates is not None:
            require_watches()
            binary, directory = self._program.certificates
            certificates.lay(binary, self._paths.base / directory)
        with self._log.open("ab") as log:
            self._log_begins = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self._command(),
                *flags,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self._working_directory(),
                env={**os.environ, **self._program.environment},
            )
        await self._wait_healthy(healthz)
        if self._program.certificates is not None:
            certificates.keep(binary, self._paths.base / directory)
        await self._wait_asked(pods_before)

    def _working_directory(self) -> Path | None:
        """Where the kubelet is started; None: where the suite was."""
        if not self._program.in_empty_directory:
            return None
        directory = self._paths.base / "empty"
        directory.mkdir(exist_ok=True)
        return directory

    def _command(self) -> list[str]:
        """The command line: the program, the flags that all kubelets get, and its own."""
        command = [
            *self._program.command,
            f"--config={self._paths.config}",
            f"--root-dir={self._paths.root}",
            f"--container-runtime-endpoint={self._endpoint}",
            f"--hostname-override={self._node_name}",
        ]
        for flag, directory in self._program.own_flags.items():
            command.append(f"{flag}={self._paths.base / directory}")
        if self._paths.login_config.exists():
            command.append(f"--image-credential-provider-config={self._paths.login_config}")
            command.append(f"--image-credential-provider-bin-dir={self._paths.login_programs}")
        if self._kubeconfig is not None:
            command.append(f"--kubeconfig={self._kubeconfig}")
        return command

    async def _wait_healthy(self, port: int) -> None:
        """Wait until healthz and /pods answer. Raises KubeletDied."""
        try:
            async with asyncio.timeout(START_WITHIN_S * self._patience):
                for url in (f":{port}/healthz", f":{self._read_only_port}/pods"):
                    while not await self._answers(url):
                        self._check_alive()
                        await asyncio.sleep(0.1)
        except TimeoutError:
            await self.kill()
            raise KubeletDied(
                "the kubelet did not answer on its healthz and its read-only port within "
                f"{START_WITHIN_S * self._patience:g} s:\n"
                f"{self._last_words()}"
            ) from None

    async def _wait_asked(self, before: int) -> None:
        """Wait until it has asked the API server for pods, at most ASKS_WITHIN_S seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ASKS_WITHIN_S * self._patience):
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
                f"{self._last_words()}",
                ended=True,
            )

    def _check_not_ending(self) -> None:
        """As `_check_alive`, of a kubelet that does not answer any more: its sockets close before
        the end of its process is known here."""
        self._check_alive()
        ended = self._process is not None and _has_ended(self._process.pid)
        if ended or says_that_it_ends(self._log_from(self._log_begins)):
            raise KubeletDied(f"the kubelet ended:\n{self._last_words()}", ended=True)

    def log_lines(self) -> list[str]:
        """Its log, of all its starts; the last LOG_BYTES of it. None before the first start."""
        return self._log_from(self._log.stat().st_size - LOG_BYTES) if self._log.exists() else []

    def _log_from(self, place: int) -> list[str]:
        """The log from that byte on."""
        with self._log.open("rb") as log:
            log.seek(max(place, 0))
            return log.read().decode(errors="replace").splitlines()

    def _last_words(self) -> str:
        lines = last_words(self._log_from(self._log_begins))
        return "\n".join(f"  {line}" for line in lines)

    async def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after STOP_WITHIN_S seconds; returns when it has ended."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """Send SIGKILL; returns when it has ended."""
        await self._end(signal.SIGKILL)

    async def _end(self, with_signal: signal.Signals) -> None:
        """Send the signal and wait; SIGKILL after STOP_WITHIN_S seconds."""
        process, self._process = self._process, None
        if process is None:
            raise RuntimeError("the kubelet does not run")
        await self._close_session()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(with_signal)
        try:
            async with asyncio.timeout(STOP_WITHIN_S * self._patience):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _close_session(self) -> None:
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def close(self) -> None:
        """End the process if it runs, and undo its mounts."""
        if self._process is not None:
            await self.kill()
        await self._close_session()
        unmount_below(self._paths.base, self._mounts_before)

    async def pods(self) -> Sequence[dict[str, Any]]:
        """`GET /pods` on the read-only port; nothing while the kubelet is stopped, or starts, or is
        killed meanwhile."""
        asked = self._process
        if asked is None or self._starts:
            return []
        self._check_alive()
        try:
            listed = await self._get("/pods")
        except (KubeletDied, RuntimeError):  # of a session that was closed
            if self._process is not asked:
                return []
            raise
        return list(listed.get("items") or [])

    async def summary(self) -> dict[str, Any]:
        """`GET /stats/summary` on the read-only port; a kubelet that has just started has no
        statistics yet, and is asked again for SUMMARY_WITHIN_S seconds."""
        tries = round(SUMMARY_WITHIN_S * self._patience / SUMMARY_AGAIN_S)
        for _ in range(tries):
            self._check_alive()
            with contextlib.suppress(_NoAnswer):
                return dict(await self._get("/stats/summary"))
            await asyncio.sleep(SUMMARY_AGAIN_S)
        return dict(await self._get("/stats/summary"))

    async def http(self, request: HttpRequest) -> HttpAnswer:
        """Ask over a connection of its own. Raises KubeletDied."""
        if self._process is None:
            raise KubeletDied("the kubelet does not run")
        self._check_alive()
        main = request.port == MAIN
        number = self._main_port if main else self._read_only_port
        if request.port == HEALTHZ:
            number = self._healthz_port
        url = f"{'https' if main else 'http'}://127.0.0.1:{number}{request.path}"
        tls = client_context(self._paths.client_ca.parent, request.certificate) if main else None
        connector = aiohttp.TCPConnector(ssl=tls or False)
        chunks: list[bytes] = []
        try:
            async with (
                aiohttp.ClientSession(connector=connector, max_field_size=1 << 20) as session,
                session.request(
                    request.method,
                    URL(url, encoded=True),
                    headers={"Connection": "close", **request.headers},
                    allow_redirects=False,
                ) as answer,
            ):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(request.for_s or ANSWER_WITHIN_S):
                        async for chunk in answer.content.iter_any():
                            chunks.append(chunk)
                headers = {name.lower(): value for name, value in answer.headers.items()}
                text = b"".join(chunks).decode(errors="replace")
                return HttpAnswer(answer.status, text, headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            self._check_not_ending()
            raise KubeletDied(f"{request.method} {url}: {error!r}\n{self._last_words()}") from None

    async def _get(self, path: str) -> Any:
        """The answer as JSON. Raises KubeletDied when there is none, or one without success."""
        url = f"http://127.0.0.1:{self._read_only_port}{path}"
        try:
            async with self._session().get(url) as answer:
                if answer.status != 200:
                    raise _NoAnswer(f"GET {url}: {answer.status} {await answer.text()}")
                return await answer.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError) as error:
            self._check_not_ending()
            raise KubeletDied(f"GET {url}: {error!r}\n{self._last_words()}") from None

    async def pod_resources(self, method: str, **fields: str) -> Any:
        """The answer on the socket below the kubelet's root directory. Raises LookupError."""
        version, _, bare = method.rpartition(".")
        messages, services = (alpha, alpha_grpc) if version else (api_pb2, api_pb2_grpc)
        service = messages.DESCRIPTOR.services_by_name["PodResourcesLister"]
        request = getattr(messages, service.methods_by_name[bare].input_type.name)(**fields)
        socket_path = self._paths.root / "pod-resources" / "kubelet.sock"
        options = [("grpc.default_authority", "localhost")]
        async with grpc.aio.insecure_channel(f"unix:{socket_path}", options=options) as channel:
            stub = services.PodResourcesListerStub(channel)
            try:
                return await getattr(stub, bare)(request, timeout=10)
            except grpc.aio.AioRpcError as error:
                raise LookupError(error.details()) from None
