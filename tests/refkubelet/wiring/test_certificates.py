"""Whom a kubelet asks for certificates, and with what it begins (SRV-004, SRV-005, SRV-006)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from certificate_world import CSRS, HOUR, WANTED, World

from fakekubeapi import FakeApi, ServerOptions
from fakekubeapi.httpx_transport import InProcessTransport
from refkubelet.api.lightkube_client import LightkubeApiClient
from refkubelet.certificates.deadlines import Wanted
from refkubelet.config import KubeletConfiguration
from refkubelet.telemetry.exposition import Sample
from refkubelet.wiring.base import CertificateDeps
from refkubelet.wiring.certificates import Certificates, build_certificates
from simclock import Rng

pytestmark = pytest.mark.virtual_time
CLIENT = Wanted("system:node:n", ("system:nodes",))


def built(world: World, config: KubeletConfiguration, **certificates: Any) -> Certificates:
    facts = SimpleNamespace(internal_ips=("192.0.2.1",), name="n")
    deps = SimpleNamespace(
        api=world.client,
        certificates=CertificateDeps(world.directory, **certificates),
        clock=world.clock,
        rng=Rng(1),
        node=SimpleNamespace(name="n", facts=facts),
    )
    gates = config.feature_gates
    gate = lambda name, default: gates.get(name, default)  # noqa: E731
    return build_certificates(SimpleNamespace(config=config, deps=deps, gate=gate))  # type: ignore[arg-type]


@asynccontextmanager
async def running(parts: Certificates) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(part.run()) for part in parts.parts()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_the_first_is_asked_for_with_bootstrap_credentials_and_the_next_with_it_SRV_005(
    tmp_path: Path,
) -> None:
    """SRV-005.4."""
    world = World(tmp_path, lasts_s=HOUR)
    world.api.signing.approve()
    first = FakeApi(world.clock, options=ServerOptions(authority=world.api.authority))
    first.signing.approve()
    first.signing.lasts_s = HOUR
    bootstrap = LightkubeApiClient.in_process(InProcessTransport(first))
    parts = built(world, KubeletConfiguration(rotate_certificates=True), bootstrap=bootstrap)
    assert parts.serving is None
    async with running(parts):
        await world.until(lambda: first.requests("POST", CSRS), 5)
        await world.until(lambda: world.posted_s(), 2 * HOUR)
    assert len(first.requests("POST", CSRS)) == 1


async def test_a_certificate_of_the_kubeconfig_is_kept_and_replaced_at_once_SRV_005(
    tmp_path: Path,
) -> None:
    """SRV-005.2."""
    world = World(tmp_path)
    given = world.issue(CLIENT, 100 * HOUR)
    config = KubeletConfiguration(rotate_certificates=True)
    parts = built(world, config, client_data=given)
    assert (tmp_path / "kubelet-client-current.pem").read_bytes() == b"".join(given)
    assert parts.client is not None
    assert parts.client.held is not None
    async with running(parts):
        await world.until(world.posted_s, 5)
    again = built(world, config, client_data=world.issue(CLIENT, HOUR))
    async with running(again):  # there is one in --cert-dir now, which wins
        await world.clock.sleep(60)
    assert len(world.posted_s()) == 1


async def test_tls_files_serve_until_there_are_others_SRV_006(tmp_path: Path) -> None:
    world = World(tmp_path / "pki")
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    for path, text in zip(files, world.issue(WANTED, 100 * HOUR), strict=True):
        path.write_bytes(text)
    config = KubeletConfiguration(
        server_tls_bootstrap=True, tls_cert_file=str(files[0]), tls_private_key_file=str(files[1])
    )
    parts = built(world, config)
    assert parts.client is None
    assert parts.serving is not None
    assert parts.serving.pair() == files
    async with running(parts):
        await world.clock.sleep(60)
    assert world.posted_s() == []


async def test_metrics_are_those_of_the_certificates_that_are_asked_for_SRV_006(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    assert list(built(world, KubeletConfiguration()).metrics()) == []
    config = KubeletConfiguration(rotate_certificates=True, server_tls_bootstrap=True)
    told = [metric.family() for metric in built(world, config).metrics()]
    lives = told.pop()
    assert lives.name == "kubelet_certificate_manager_server_rotation_seconds"
    assert lives.samples[-1] == Sample((), 0.0, "_count")
    assert [(family.name, family.kind, family.samples[0].value) for family in told] == [
        ("kubelet_certificate_manager_client_expiration_renew_errors", "counter", 0),
        ("kubelet_certificate_manager_client_ttl_seconds", "gauge", float("inf")),
        ("kubelet_server_expiration_renew_errors", "counter", 0),
        ("kubelet_certificate_manager_server_ttl_seconds", "gauge", float("inf")),
    ]


async def test_the_gate_and_an_api_server_are_needed_SRV_004(tmp_path: Path) -> None:
    world = World(tmp_path)
    off = {"RotateKubeletServerCertificate": False}
    config = KubeletConfiguration(server_tls_bootstrap=True, feature_gates=off)
    assert built(world, config).serving is None
