"""The main port with a certificate from the API server, and the whole as a process (SRV-004)."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from msgspec import structs
from process_world import free_port, kubelet, write_config
from server_world import EVERYBODY, host, port
from tls_api import TlsApi, tls_api

from fakecri import FakeCRI
from fakecri.machine.node import FakeNode
from fakecri.server import serve
from refkubelet.certificates.deadlines import Wanted
from refkubelet.certificates.pem import held_in, new_key, request_for
from refkubelet.certificates.store import CertificateStore, Pair
from refkubelet.server.http import KubeletServers, Ports, ServerError, check_servers
from refkubelet.server.port import read_only_port
from simclock import RealClock

SERVING = Wanted("system:node:n1", ("system:nodes",), ("n1",), ("127.0.0.1",))
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RESOURCE = "certificatesigningrequests.certificates.k8s.io"


def new_pair(server: TlsApi, lasts_s: int = 3600) -> tuple[bytes, bytes]:
    key = new_key()
    authority = server.api.authority
    assert authority is not None
    usages = ("digital signature", "server auth")
    request = request_for(SERVING, key)
    return authority.sign(request, usages, RealClock().now(), lasts_s).encode(), key


async def shown(number: int, authority: Path) -> bytes:
    """The certificate (DER) that the port shows, which that authority must have signed."""
    context = ssl.create_default_context(cafile=str(authority))
    async with asyncio.timeout(20):
        _, writer = await asyncio.open_connection("127.0.0.1", number, ssl=context)
    try:
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return bytes(found)
    finally:
        writer.close()


async def test_handshakes_fail_until_there_is_a_certificate_and_see_each_new_one_SRV_004(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SRV-004.4, SRV-004.5."""
    config = structs.replace(EVERYBODY, address="127.0.0.1", port=free_port(), healthz_port=0)
    store = CertificateStore(tmp_path / "pki", "kubelet-server", RealClock())
    expired = False

    def pair() -> Pair | None:
        return None if expired else store.pair()

    served = host()
    ports = Ports(lambda: port(config, served), lambda: read_only_port(served))
    servers = KubeletServers(
        config,
        ports,
        RealClock(),
        certificates=str(tmp_path / "own"),
        host_name="n1",
        asked_for=pair,
    )
    await servers.start()
    try:
        async with tls_api(tmp_path / "api") as server:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await shown(config.port, server.authority_file)
            assert "no serving certificate available for the kubelet" in caplog.text
            assert not (tmp_path / "own").exists()
            store.update(*new_pair(server))
            first = await shown(config.port, server.authority_file)
            await asyncio.sleep(1.1)  # the file's name has seconds, and it is looked once in one
            store.update(*new_pair(server))
            assert await shown(config.port, server.authority_file) != first
            expired = True
            await asyncio.sleep(1.1)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await shown(config.port, server.authority_file)
    finally:
        await servers.stop()


def test_without_an_api_server_it_is_refused_SRV_004() -> None:
    with pytest.raises(ServerError, match="serverTLSBootstrap: there is no API server"):
        check_servers(
            structs.replace(EVERYBODY, server_tls_bootstrap=True), has_api=False, insecure=True
        )


async def test_a_node_with_a_bootstrap_token_gets_both_certificates_SRV_004_SRV_005_SRV_007(
    tmp_path: Path,
) -> None:
    number = free_port()
    config = write_config(tmp_path, healthz_port=0)
    text = config.read_text().replace("enableServer: false\n", "")
    extra = "serverTLSBootstrap: true\nrotateCertificates: true\n"
    config.write_text(text + f"address: 127.0.0.1\nport: {number}\n" + extra)
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with tls_api(tmp_path / "api") as server, serve(cri, f"unix://{tmp_path}/c") as runtime:
        flags = (
            *("--bootstrap-kubeconfig", str(server.bootstrap())),
            *("--kubeconfig", str(tmp_path / "kubelet.conf")),
            *(
                "--cert-dir",
                str(tmp_path / "pki"),
                "--node-ip",
                "127.0.0.1",
                "--insecure-server",
                "-v",
            ),
        )
        async with kubelet(config, runtime.endpoint, *flags) as process:
            await process.line(lambda line: "serving certificate: " in line and "issued" in line)
            certificate = await shown(number, server.authority_file)
            assert ssl.DER_cert_to_PEM_cert(certificate).splitlines()[1] in (
                (tmp_path / "pki" / "kubelet-server-current.pem").read_text()
            )
            process.stop()
            code, rest = await process.end()
        assert code == 0
        assert "PRIVATE" not in rest
    current = (tmp_path / "pki" / "kubelet-client-current.pem").read_bytes()
    assert held_in(current, current).common_name == "system:node:n1"
    made = server.api.requests("POST", CSRS)
    by_signer = {one.body["spec"]["signerName"].partition("/")[2] for one in made}
    assert by_signer == {"kube-apiserver-client-kubelet", "kubelet-serving"}
    assert "system:bootstrap:abcdef" in server.requesters()


async def test_a_broken_file_ends_the_start_with_one_error_SRV_006(tmp_path: Path) -> None:
    config = write_config(tmp_path, healthz_port=0)
    config.write_text(config.read_text() + "rotateCertificates: true\n")
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "kubelet-client-current.pem").write_text("x")
    cri = FakeCRI(node=FakeNode(image_root="/"))
    async with tls_api(tmp_path / "api") as server, serve(cri, f"unix://{tmp_path}/c") as runtime:
        flags = ("--kubeconfig", str(server.bootstrap()), "--cert-dir", str(tmp_path / "pki"))
        async with kubelet(config, runtime.endpoint, *flags) as process:
            code, rest = await process.end()
    assert code == 2
    assert "kubelet-client-current.pem: cannot be used" in rest.splitlines()[-2]
    assert "Traceback" not in rest
