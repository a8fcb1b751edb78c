"""`fakekubeapi serve --tls --approve-certificates`: the authority, its files, the kubeconfig."""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakekubeapi.access.serving import AuthorityError, authority_in
from fakekubeapi.cli import main
from refkubelet.api.kubeconfig import read_kubeconfig
from refkubelet.certificates.deadlines import Wanted
from refkubelet.certificates.pem import new_key, request_for
from refkubelet.certificates.requests import CLIENT, signing_request
from simclock import RealClock

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
NODE = Wanted("system:node:n", ("system:nodes",))


@contextmanager
def served(directory: Path, *flags: str) -> Iterator[tuple[str, Path]]:
    """A server of its own process: its address and its kubeconfig."""
    out = directory / "kubeconfig"
    listen = ("--listen", "127.0.0.1:0", "--kubeconfig-out", str(out))
    command = [sys.executable, "-m", "fakekubeapi.cli", "serve", *listen, *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().removeprefix("fakekubeapi: serving on ").strip(), out
        os.kill(process.pid, signal.SIGTERM)
    assert process.returncode == 0


def trusting(kubeconfig: Path) -> ssl.SSLContext:
    """A client that believes the authority of that kubeconfig alone."""
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    root = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return ssl.create_default_context(cadata=root)


def ask(url: str, context: ssl.SSLContext, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return json.load(answer)


def test_clients_of_the_kubeconfig_trust_the_server_and_get_certificates(tmp_path: Path) -> None:
    with served(tmp_path, "--tls", "--approve-certificates") as (url, kubeconfig):
        assert url.startswith("https://127.0.0.1:")
        assert read_kubeconfig(kubeconfig).cluster.server == url
        context = trusting(kubeconfig)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            ask(f"{url}/version", ssl.create_default_context())
        key = new_key()
        made = ask(url + CSRS, context, signing_request(CLIENT, request_for(NODE, key)))
        name = made["metadata"]["name"]
        pem = ask(f"{url}{CSRS}/{name}", context)["status"]["certificate"]
        pair = tmp_path / "pair.pem"
        pair.write_bytes(base64.b64decode(pem) + key)
        context.load_cert_chain(pair)
        asked = ask(url + CSRS, context, signing_request(CLIENT, request_for(NODE, new_key())))
        assert asked["spec"]["username"] == "system:node:n"
        assert "system:nodes" in asked["spec"]["groups"]


def test_without_the_flag_requests_wait(tmp_path: Path) -> None:
    with served(tmp_path, "--tls") as (url, kubeconfig):
        body = signing_request(CLIENT, request_for(NODE, new_key()))
        made = ask(url + CSRS, trusting(kubeconfig), body)
        found = ask(f"{url}{CSRS}/{made['metadata']['name']}", trusting(kubeconfig))
        assert "certificate" not in found.get("status", {})


def test_the_authority_is_kept_with_the_data(tmp_path: Path) -> None:
    flags = ("--tls", "--data", str(tmp_path / "data"))
    with served(tmp_path, *flags) as (url, kubeconfig):
        first = trusting(kubeconfig)
        ask(f"{url}/version", first)
    with served(tmp_path, *flags) as (url, _):
        ask(f"{url}/version", first)
    mode = (tmp_path / "data/ca.key").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_half_an_authority_and_a_wrong_one_are_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = RealClock().now()
    authority_in(tmp_path, now)
    other = authority_in(tmp_path / "other", now)
    (tmp_path / "ca.key").write_text(other.key_pem())
    with pytest.raises(AuthorityError, match=r"the key is not that of the certificate"):
        authority_in(tmp_path, now)
    (tmp_path / "ca.key").write_text("no key")
    with pytest.raises(AuthorityError, match=r"ca.key are no authority"):
        authority_in(tmp_path, now)
    (tmp_path / "ca.key").unlink()
    assert main(["serve", "--listen", "127.0.0.1:0", "--tls", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"--data: {tmp_path}/ca.key: No such file" in said
    assert "remove both" in said
