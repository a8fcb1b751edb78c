"""What kubeconfigs have to do with client certificates: is the one in it still good, and a new one
that names the certificates of `--cert-dir`.

Rules: SRV-005, SRV-007. Upstream: pkg/kubelet/certificate/bootstrap/bootstrap.go.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml
from lightkube.config.kubeconfig import SingleConfig

from refkubelet.api.kubeconfig import read_kubeconfig
from refkubelet.certificates.deadlines import is_expired
from refkubelet.certificates.pem import PemError, expiries, new_key, request_for
from refkubelet.certificates.requests import client_of
from refkubelet.certificates.store import CertificateError, Pair
from refkubelet.checkpoints.atomic_file import write_whole
from refkubelet.config import ConfigError

TEMPORARY_KEY: Final = "kubelet-client.key.tmp"


def named_files(config: SingleConfig) -> Pair | None:
    """The files of certificate and key that it names; None: it names none."""
    user = config.user
    if user is None or not user.client_cert or not user.client_key:
        return None
    return Path(config.abs_file(user.client_cert)), Path(config.abs_file(user.client_key))


def own_data(config: SingleConfig) -> tuple[bytes, bytes] | None:
    """The certificate and key that are in it, as PEM; None: there are none. Raises
    `ConfigError`."""
    user = config.user
    if user is None or not user.client_cert_data or not user.client_key_data:
        return None
    try:
        return base64.b64decode(user.client_cert_data), base64.b64decode(user.client_key_data)
    except (binascii.Error, ValueError):
        raise ConfigError(
            "kubeconfig: client-certificate-data, client-key-data: wanted base64 of PEM"
        ) from None


def unusable(kubeconfig: Path, now: datetime) -> str:
    """Why the bootstrap file is needed; "": a certificate is in `kubeconfig`, or named there, and
    has not expired (SRV-007.1)."""
    try:
        config = read_kubeconfig(kubeconfig)
        files, data = named_files(config), own_data(config)
        if data is None and files is None:
            return f"kubeconfig {kubeconfig}: there is no client certificate in it"
        text = data[0] if data is not None else files[0].read_bytes() if files else b""
        certificates = expiries(text)
    except ConfigError as error:
        return str(error)
    except OSError as error:
        return f"kubeconfig {kubeconfig}: client certificate: {error.strerror}"
    except PemError as error:
        return f"kubeconfig {kubeconfig}: client certificate: {error}"
    if any(is_expired(certificate, now) for certificate in certificates):
        return f"kubeconfig {kubeconfig}: the client certificate has expired"
    return ""


def read_bootstrap(path: str) -> SingleConfig:
    """The bootstrap file. Raises `ConfigError`."""
    try:
        return read_kubeconfig(path)
    except ConfigError as error:
        raise ConfigError(
            f"unable to load bootstrap kubeconfig: {error}\n"
            "  give --bootstrap-kubeconfig a file with credentials that may ask for certificates, "
            "or --kubeconfig one with a certificate"
        ) from None


def write_kubeconfig(path: Path, bootstrap: SingleConfig, certificate: Path) -> None:
    """Write a kubeconfig for the server of `bootstrap`, with certificate and key in one file
    (SRV-007.2). Raises `ConfigError`."""
    name = {"cluster": "default-cluster", "user": "default-auth"}
    files = {"client-certificate": str(certificate), "client-key": str(certificate)}
    value = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name["cluster"], "cluster": _cluster(bootstrap)}],
        "users": [{"name": name["user"], "user": files}],
        "contexts": [{"name": "default-context", "context": {**name, "namespace": "default"}}],
        "current-context": "default-context",
    }
    try:
        write_whole(path, yaml.safe_dump(value, sort_keys=False).encode(), directory_mode=0o755)
    except OSError as error:
        raise ConfigError(
            f"--kubeconfig {path}: cannot be written: {error.strerror}\n"
            "  name a file in a directory that the kubelet may write to"
        ) from None


def _cluster(bootstrap: SingleConfig) -> dict[str, Any]:
    cluster = bootstrap.cluster
    cluster_entry: dict[str, Any] = {"server": cluster.server}
    if cluster.insecure:
        cluster_entry["insecure-skip-tls-verify"] = True
    if cluster.certificate_auth:
        cluster_entry["certificate-authority"] = str(bootstrap.abs_file(cluster.certificate_auth))
    elif cluster.certificate_auth_data:
        cluster_entry["certificate-authority-data"] = cluster.certificate_auth_data
    return cluster_entry


def kept_key(directory: Path) -> bytes:
    """The key of a request that an earlier start did not see the end of, or a new one, which is
    kept from now on (SRV-007.3). Raises `CertificateError`."""
    file = directory / TEMPORARY_KEY
    try:
        key = file.read_bytes()
        request_for(client_of("any"), key)
    except (OSError, PemError):
        key = new_key()
        try:
            write_whole(file, key, directory_mode=0o755)
        except OSError as error:
            raise CertificateError(
                f"--cert-dir {directory}: {TEMPORARY_KEY} cannot be written: {error.strerror}\n"
                "  name a directory that the kubelet may write to"
            ) from None
    return key


def request_name(key_pem: bytes, node_name: str) -> str:
    """The name of the request for that key and node: the same at each start. It tells nothing of
    the key."""
    from cryptography.hazmat.primitives import serialization

    public = serialization.load_pem_private_key(key_pem, None).public_key()
    text = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    digest = hashlib.sha256(text + node_name.encode()).digest()
    return "node-csr-" + base64.urlsafe_b64encode(digest).decode().rstrip("=")
