"""Switches of `fakekubeapi serve` beyond where it listens."""

import base64
import json
import os
import signal
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakekubeapi_helpers import PODS, pod
from test_fakekubeapi_http import start_cli

from fakekubeapi.cli import main


def ask(config: dict[str, Any], path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer of the server that a kubeconfig names."""
    cluster = config["clusters"][0]["cluster"]
    tls = None
    if root := cluster.get("certificate-authority-data"):
        tls = ssl.create_default_context(cadata=base64.b64decode(root).decode())
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{cluster['server']}{path}", data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, context=tls, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_plug_in_service_account_gives_pods_their_token(tmp_path: Path) -> None:
    out = tmp_path / "kubeconfig"
    switches = ("--listen", "127.0.0.1:0", "--tls", "--kubeconfig-out", str(out))
    plugins = ("--enable-admission-plugins", "ServiceAccount")
    with start_cli("serve", *switches, *plugins) as process:
        assert process.stdout is not None
        assert "serving on https://" in process.stdout.readline()
        config = yaml.safe_load(out.read_text())
        status, made = ask(config, PODS, pod())
        assert status == 201
        assert made["spec"]["serviceAccountName"] == "default"
        (volume,) = made["spec"]["volumes"]
        assert volume["name"].startswith("kube-api-access-")
        root = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        assert ask(config, root)[1]["data"]["ca.crt"] == base64.b64decode(authority).decode()
        status, refusal = ask(config, PODS, pod("b", serviceAccountName="nobody"))
        why = 'error looking up service account default/nobody: serviceaccount "nobody" not found'
        assert (status, refusal["message"]) == (403, f'pods "b" is forbidden: {why}')
        os.kill(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=200)
    assert (process.returncode, errors) == (0, "")
    assert config["users"][0]["user"] == {"token": "of-nobody"}


@pytest.mark.parametrize(
    ("switches", "said"),
    [
        (
            ("--enable-admission-plugins", "ServiceAccount,Own"),
            '--enable-admission-plugins: plugin "Own" is unknown; wanted some of ServiceAccount',
        ),
        (
            ("--kubelet-preferred-address-types", "InternalIP,Postal"),
            "--kubelet-preferred-address-types: got 'Postal'; wanted some of InternalIP,",
        ),
        (
            ("--kubernetes", "1.2"),
            "--kubernetes: no API types of Kubernetes 1.2; there are those of",
        ),
        (("--kubelet-client-certificate", "/none.pem"), "/none.pem: wanted a certificate and"),
        (("--kubelet-certificate-authority", "/none.pem"), "/none.pem: wanted certificates of an"),
    ],
)
def test_wrong_switches_are_one_clear_error(
    switches: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--listen", "127.0.0.1:0", *switches]) == 2
    assert capsys.readouterr().err.startswith(f"fakekubeapi: {said}")
