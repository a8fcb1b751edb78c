"""A first client certificate, kubeconfigs, and the client that changes its certificate: over TLS
(SRV-005, SRV-007)."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import yaml
from tls_api import CSRS, TlsApi, tls_api

from kubeobjects.structs import replace
from refkubelet.api.client import ApiError
from refkubelet.api.kinds import SERVICES
from refkubelet.certificates.bootstrap import TEMPORARY_KEY, kept_key, request_name, unusable
from refkubelet.certificates.pem import new_key
from refkubelet.certificates.store import CertificateError
from refkubelet.config import ConfigError
from refkubelet.wiring.api_access import ApiAccess, Asked, open_access
from simclock import RealClock, Rng

CLOCK = RealClock()
NODE = "system:node:n1"


@asynccontextmanager
async def access(asked: Asked) -> AsyncIterator[ApiAccess]:
    async with AsyncExitStack() as stack:
        yield await open_access(asked, CLOCK, Rng(1), stack)


def asked_of(server: TlsApi, directory: Path, *, rotate: bool) -> Asked:
    return Asked(
        kubeconfig=str(directory / "kubelet.conf"),
        bootstrap=str(server.bootstrap()),
        directory=directory / "pki",
        node_name="n1",
        rotate=rotate,
    )


async def whoami(found: ApiAccess) -> str:
    """As whom the client is known at the server."""
    assert found.api is not None
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await found.api.create_review(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews", body
    )
    return str(answer["status"]["userInfo"]["username"])


async def test_without_rotation_the_start_waits_for_a_certificate_SRV_007(tmp_path: Path) -> None:
    """SRV-007.3."""
    async with tls_api(tmp_path / "api") as server:
        asked = asked_of(server, tmp_path, rotate=False)
        async with access(asked) as found:
            assert await whoami(found) == NODE
            assert found.certificates.bootstrap is None
        assert server.requesters() == ["system:bootstrap:abcdef"]
        (made,) = server.api.requests("POST", CSRS)
        assert made.body["metadata"]["name"].startswith("node-csr-")
        assert not (tmp_path / "pki" / TEMPORARY_KEY).exists()
        async with access(replace(asked, bootstrap="/nowhere")) as again:  # not even read
            assert await whoami(again) == NODE
        assert len(server.api.requests("POST", CSRS)) == 1


async def test_the_kubeconfig_names_the_link_and_the_bootstrap_s_server_SRV_007(
    tmp_path: Path,
) -> None:
    """SRV-007.2."""
    async with tls_api(tmp_path / "api") as server:
        asked = asked_of(server, tmp_path, rotate=True)
        async with access(asked) as found:
            assert await whoami(found) == "kubernetes-admin"  # of the fake: without credentials
            assert found.certificates.bootstrap is not None
    value = yaml.safe_load((tmp_path / "kubelet.conf").read_text())
    current = str(tmp_path / "pki" / "kubelet-client-current.pem")
    (user,) = value["users"]
    assert user["user"] == {"client-certificate": current, "client-key": current}
    (cluster,) = value["clusters"]
    assert cluster["cluster"] == {
        "server": server.url,
        "certificate-authority": str(server.authority_file),
    }
    assert (tmp_path / "kubelet.conf").stat().st_mode & 0o777 == 0o600


async def test_a_new_certificate_closes_the_connections_with_the_old_one_SRV_005(
    tmp_path: Path,
) -> None:
    """SRV-005.3."""
    async with tls_api(tmp_path / "api") as server:
        asked = replace(asked_of(server, tmp_path, rotate=True), bootstrap="")
        old = tmp_path / "old.pem"
        old.write_bytes(b"".join(server.pair("old")))
        named = {"client-certificate": str(old), "client-key": str(old)}
        path = str(server.kubeconfig("kubelet.conf", **named))
        async with access(replace(asked, kubeconfig=path)) as found:
            assert await whoami(found) == "system:node:old"
            assert found.certificates.client_files == (old, old)
            api = found.api
            assert api is not None

            async def watch() -> None:
                async for _ in api.watch(SERVICES, ""):
                    pass

            watching = asyncio.create_task(watch())
            while not server.api.requests("GET", "/services$"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            store = replace(asked, kubeconfig=path).store(CLOCK)
            store.update(*server.pair("n1"))
            pair = store.pair()
            assert pair is not None
            await found.certificates.renewed(pair)
            async with asyncio.timeout(20):
                with pytest.raises(ApiError):
                    await watching
            assert await whoami(found) == NODE
        async with access(replace(asked, kubeconfig=path)) as again:  # --cert-dir wins
            assert await whoami(again) == NODE


async def test_a_certificate_in_the_kubeconfig_is_given_to_the_manager_SRV_005(
    tmp_path: Path,
) -> None:
    async with tls_api(tmp_path / "api") as server:
        certificate, key = server.pair("n1")
        path = server.kubeconfig(
            "kubelet.conf",
            **{
                "client-certificate-data": base64.b64encode(certificate).decode(),
                "client-key-data": base64.b64encode(key).decode(),
            },
        )
        asked = asked_of(server, tmp_path, rotate=True)
        async with access(replace(asked, kubeconfig=str(path))) as found:
            assert found.certificates.client_data == (certificate, key)
            assert found.certificates.bootstrap is None
            assert await whoami(found) == NODE


async def test_a_refused_request_ends_the_start_and_its_key_is_used_again_SRV_007(
    tmp_path: Path,
) -> None:
    async with tls_api(tmp_path / "api") as server:
        server.api.signing.deny(message="not you")
        asked = asked_of(server, tmp_path, rotate=False)
        for _ in range(2):
            with pytest.raises(
                CertificateError, match=r"is denied, reason: Denied, message: not y"
            ):
                async with access(asked):
                    pass
        first, second = server.api.requests("POST", CSRS)
        assert (first.status, second.status) == (201, 409)
        assert first.body["metadata"] == second.body["metadata"]
        assert (tmp_path / "pki" / TEMPORARY_KEY).stat().st_mode & 0o777 == 0o600
        assert not (tmp_path / "kubelet.conf").exists()


async def test_a_bootstrap_file_that_is_missing_ends_the_start_SRV_007(tmp_path: Path) -> None:
    """SRV-007.4."""
    asked = Asked(
        kubeconfig=str(tmp_path / "kubelet.conf"),
        bootstrap=str(tmp_path / "bootstrap.conf"),
        directory=tmp_path / "pki",
        node_name="n1",
        rotate=True,
    )
    with pytest.raises(ConfigError, match=r"unable to load bootstrap kubeconfig: .*no such file"):
        async with access(asked):
            pass
    with pytest.raises(ConfigError, match="--bootstrap-kubeconfig: there is no --kubeconfig"):
        async with access(replace(asked, kubeconfig="")):
            pass


async def test_what_makes_a_kubeconfig_useless_SRV_007(tmp_path: Path) -> None:
    """SRV-007.1."""
    async with tls_api(tmp_path / "api") as server:
        now = CLOCK.now()
        assert "no such file" in unusable(tmp_path / "missing.conf", now)
        (tmp_path / "broken.conf").write_text("{")
        assert unusable(tmp_path / "broken.conf", now)
        assert "no client certificate" in unusable(server.bootstrap(), now)

        def naming(file: str) -> Path:
            return server.kubeconfig("x.conf", **{"client-certificate": file, "client-key": file})

        assert "No such file" in unusable(naming(str(tmp_path / "gone.pem")), now)
        for name, lasts_s in (("good.pem", 3600), ("old.pem", -10)):
            (tmp_path / name).write_bytes(b"".join(server.pair("n1", lasts_s)))
        assert unusable(naming(str(tmp_path / "good.pem")), now) == ""
        assert "has expired" in unusable(naming(str(tmp_path / "old.pem")), now)
        (tmp_path / "none.pem").write_text("x")
        assert "no certificate" in unusable(naming(str(tmp_path / "none.pem")), now)


async def test_the_name_of_a_request_is_that_of_its_key_and_tells_nothing(tmp_path: Path) -> None:
    key = kept_key(tmp_path)
    assert kept_key(tmp_path) == key
    name = request_name(key, "n1")
    assert name == request_name(key, "n1")
    assert name != request_name(new_key(), "n1")
    assert name != request_name(key, "n2")
    (tmp_path / TEMPORARY_KEY).write_text("broken")
    assert kept_key(tmp_path) != key


async def test_no_key_is_in_the_log_SRV_006(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with (
            tls_api(tmp_path / "api") as server,
            access(asked_of(server, tmp_path, rotate=False)) as found,
        ):
            await whoami(found)
    text = (tmp_path / "pki" / "kubelet-client-current.pem").read_text()
    secret = text.partition("PRIVATE KEY-----\n")[2].splitlines()[0]
    assert "PRIVATE KEY" not in caplog.text
    assert secret not in caplog.text
