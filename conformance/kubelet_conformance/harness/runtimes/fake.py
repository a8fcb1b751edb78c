"""The fake runtime and its image registry: in this process, over a socket for a kubelet process."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from fakecri import FakeCRI, FakeNode, RegistryImage
from fakecri.core.image_store.images import connection_refused, not_found
from kubelet_conformance.harness.image_registry import CLOSED_HOST, OPEN_HOST, PASSWORD, USER
from kubelet_conformance.harness.manifests import IMAGE, OTHER_IMAGE, PodPlan
from kubelet_conformance.harness.runtimes import played
from kubelet_conformance.harness.runtimes.recorded import RecordedRuntime
from simclock import Clock, Ids, Latency

GIB: Final = 1024**3


class FakeRuntime(RecordedRuntime):
    """`Runtime` over a FakeCRI of its own. `machine` is its node, for a kubelet in this process."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        *,
        endpoint: str = "",
        image_root: str = "/var/lib/containerd",
        pod_network: str = "10.88",
        latency: Latency | None = None,
    ) -> None:
        """`endpoint`: the socket it is served on, "" if it is not. `image_root`: the directory of
        the images; a kubelet on the real machine looks at the filesystem that holds it (EVIC-023).
        `pod_network`: fakecri's option of that name; a kubelet process can reach pods if their
        addresses are loopback addresses. `latency`: how long the kubelet's calls take; what the
        harness does itself takes no time."""
        self._registry = FakeRegistry()
        self.machine = FakeNode(memory_bytes=8 * GIB, base_memory_used_bytes=1 * GIB)
        self.cri = FakeCRI(
            clock,
            ids,
            self.machine,
            images=(IMAGE, OTHER_IMAGE),
            registry=self._registry,
            runtime_handlers=("runc",),  # as containerd is configured
            # A kubelet asks to reopen a log file that it cannot find (CRI-104).
            write_logs=True,
            pod_network=pod_network,
        )
        self.machine.image_root = image_root
        self._taught: dict[str, list[Any]] = {}
        super().__init__(self.cri, clock, endpoint, latency)

    def teach(self, pod: str, plan: PodPlan) -> None:
        """Give the behaviours of the plan to containers of that pod that are started from now
        on."""
        for rule in self._taught.pop(pod, []):
            rule.remove()
        self._taught[pod] = played.teach(self.cri, pod, plan)

    @property
    def fake(self) -> FakeCRI:
        """The fake runtime."""
        return self.cri

    def visits(self, pod: str) -> Sequence[Any]:
        """The connections to the containers of that pod, in order of arrival."""
        return [visit for visit in self.cri.ports.visits if visit.pod == pod]

    def activity(self) -> int:
        """Probes of pods that no call shows count, too."""
        ports = self.cri.ports
        return super().activity() + len(ports.visits) + len(ports.turned_away)

    def turned_away(self, pod: str) -> Sequence[Any]:
        """The clients that no container of that pod spoke with, in order of arrival."""
        return [visit for visit in self.cri.ports.turned_away if visit.pod == pod]

    def kernel_says(self, line: str) -> None:
        self.machine.kernel_says(line)

    async def registry(self) -> FakeRegistry:
        return self._registry

    async def close(self) -> None:
        """Close the sockets of its pods; nothing else outlives the object."""
        await self.cri.stop_streaming()


class FakeRegistry:
    """An `ImageRegistry` for a fake runtime: the function that a FakeCRI calls at each pull (its
    option `registry`)."""

    def __init__(self) -> None:
        self.open_host = OPEN_HOST
        self.closed_host = CLOSED_HOST
        self._images: set[str] = set()
        self._away = False

    def __call__(self, reference: str) -> RegistryImage | None:
        """The answer to a pull of that reference, which names its host; None for other hosts."""
        host, _, name = reference.partition("/")
        if host not in (self.open_host, self.closed_host):
            return None
        if self._away:
            return RegistryImage(error=connection_refused(reference))
        login = (USER, PASSWORD) if host == self.closed_host else None
        if name in self._images:
            content = f"{self.open_host}/{name}"  # the same image on both hosts
            return RegistryImage(content=content, credentials=login)
        return RegistryImage(error=not_found(reference), error_code="NOT_FOUND", credentials=login)

    async def add(self, name: str) -> None:
        self._images.add(name)

    async def stop(self) -> None:
        self._away = True

    async def start(self) -> None:
        self._away = False


@cache
def server_context() -> ssl.SSLContext | None:
    """TLS for the HTTPS ports of fake pods: a self-signed certificate that `openssl` makes, one for
    all cases of this process, valid for a day; None where there is no `openssl`. Kubelets do not
    verify it (PROBE-066)."""
    if shutil.which("openssl") is None:
        return None
    with tempfile.TemporaryDirectory(prefix="pods-") as directory:
        key, certificate = Path(directory, "pods.key"), Path(directory, "pods.crt")
        make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1"
        command = [*make.split(), "-subj", "/CN=pod", "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True, timeout=30)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context
