"""A self-signed certificate for the HTTPS ports of fake pods, made by `openssl` when it is there.

Kubelets do not verify it (PROBE-066), so it says nothing and lives for a day.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path


def server_context(directory: Path) -> ssl.SSLContext | None:
    """A server's side of TLS; its files lie in `directory`. None: there is no `openssl`."""
    if shutil.which("openssl") is None:
        return None
    key, certificate = directory / "pods.key", directory / "pods.crt"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1"
    command = [*make.split(), "-subj", "/CN=pod", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
