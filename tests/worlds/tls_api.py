"""A fake API server with TLS that knows clients by their certificates, and kubeconfigs for it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fakekubeapi import CertificateAuthority, FakeApi, ServerOptions
from fakekubeapi.http import serve
from refkubelet.certificates.deadlines import Wanted
from refkubelet.certificates.pem import new_key, request_for
from simclock import RealClock

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
TOKEN = "abcdef.0123456789abcdef"


@dataclass
class TlsApi:
    """The server, and where its files are."""

    api: FakeApi
    url: str
    directory: Path

    @property
    def authority_file(self) -> Path:
        return self.directory / "ca.crt"

    def kubeconfig(self, name: str, **user: Any) -> Path:
        """A kubeconfig for that user."""
        cluster = {"server": self.url, "certificate-authority": str(self.authority_file)}
        value = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file = self.directory / name
        file.write_text(yaml.safe_dump(value))
        return file

    def bootstrap(self) -> Path:
        """A kubeconfig with a token of a bootstrapper."""
        self.api.users.add(TOKEN, "system:bootstrap:abcdef", groups=("system:bootstrappers",))
        return self.kubeconfig("bootstrap.conf", token=TOKEN)

    def pair(self, name: str, lasts_s: int = 3600) -> tuple[bytes, bytes]:
        """A client certificate of that node and its key."""
        key = new_key()
        request = request_for(Wanted(f"system:node:{name}", ("system:nodes",)), key)
        authority = self.api.authority
        assert authority is not None
        usages = ("digital signature", "client auth")
        return authority.sign(request, usages, RealClock().now(), lasts_s).encode(), key

    def requesters(self) -> list[str]:
        """Who made the certificate requests that are there."""
        resource = "certificatesigningrequests.certificates.k8s.io"
        return [found["spec"]["username"] for found in self.api.store.items(resource)]


@asynccontextmanager
async def tls_api(directory: Path) -> AsyncIterator[TlsApi]:
    """Serve one on a free port; certificates are approved and signed."""
    directory.mkdir(parents=True, exist_ok=True)
    now = RealClock().now()
    authority = CertificateAuthority.make(now)
    api = FakeApi(RealClock(), options=ServerOptions(authority=authority))
    api.signing.approve()
    (directory / "ca.crt").write_text(authority.root_pem)
    key = new_key()
    names = Wanted("kube-apiserver", (), ("localhost",), ("127.0.0.1",))
    usages = ("digital signature", "server auth")
    certificate = authority.sign(request_for(names, key), usages, now)
    (directory / "server.pem").write_bytes(certificate.encode() + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem")
    context.load_verify_locations(cadata=authority.root_pem)
    context.verify_mode = ssl.CERT_OPTIONAL
    async with await serve(api, tls=context) as server:
        yield TlsApi(api, server.url, directory)
