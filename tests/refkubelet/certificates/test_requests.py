"""What is asked for, and what became of it (SRV-004, SRV-005, SRV-006)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from lightkube.models.certificates_v1 import CertificateSigningRequest

from refkubelet.api.kinds import SIGNING_REQUESTS
from refkubelet.certificates.deadlines import Wanted
from refkubelet.certificates.requests import (
    CLIENT,
    SERVING,
    Outcome,
    certificate_of,
    client_of,
    outcome,
    server_of,
    signing_request,
    why,
)

NODES = ("system:nodes",)


def row(kind: str, address: str) -> dict[str, str]:
    return {"type": kind, "address": address}


def request(*kinds: str, certificate: str = "") -> CertificateSigningRequest:
    rows = [{"type": k, "status": "True", "reason": f"{k}Reason", "message": "m"} for k in kinds]
    value: dict[str, Any] = {
        "metadata": {"name": "csr-x"},
        "spec": {"request": "", "signerName": "a/b"},
        "status": {"conditions": rows, "certificate": certificate},
    }
    return SIGNING_REQUESTS.decode(value)


def test_a_client_is_the_node_in_the_group_of_nodes_SRV_005() -> None:
    assert client_of("n") == Wanted("system:node:n", NODES)


def test_a_server_has_all_names_and_addresses_SRV_004() -> None:
    rows = [
        row("InternalIP", "192.0.2.2"),
        row("ExternalIP", "2001:db8:0::1"),
        row("InternalIP", "not an address"),
        row("Hostname", "n"),
        row("InternalDNS", "n.internal"),
        row("ExternalDNS", "n.example"),
        row("Other", "x"),
        row("InternalIP", "192.0.2.2"),
    ]
    names = ("n", "n.example", "n.internal")
    addresses = ("192.0.2.2", "2001:db8::1")
    assert server_of("n", rows) == Wanted("system:node:n", NODES, names, addresses)


def test_a_host_name_may_be_an_address_SRV_004() -> None:
    found = server_of("n", [row("Hostname", "192.0.2.3")])
    assert found == Wanted("system:node:n", NODES, (), ("192.0.2.3",))


def test_names_alone_do_not_suffice_but_with_the_gate_SRV_004() -> None:
    rows = [row("Hostname", "n")]
    assert server_of("n", rows) is None
    assert server_of("n", rows, names_suffice=True) == Wanted("system:node:n", NODES, ("n",))
    assert server_of("n", [], names_suffice=True) is None


@pytest.mark.parametrize(
    ("purpose", "signer", "usage", "files"),
    [
        (CLIENT, "kubernetes.io/kube-apiserver-client-kubelet", "client auth", "kubelet-client"),
        (SERVING, "kubernetes.io/kubelet-serving", "server auth", "kubelet-server"),
    ],
)
def test_the_request_SRV_004_SRV_005(purpose: Any, signer: str, usage: str, files: str) -> None:
    assert signing_request(purpose, b"pem") == {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(b"pem").decode(),
            "signerName": signer,
            "usages": ["digital signature", usage],
        },
    }
    assert purpose.files == files
    assert signing_request(purpose, b"pem", "x")["metadata"] == {"name": "x"}


@pytest.mark.parametrize(
    ("kinds", "certificate", "wanted"),
    [
        ((), "", Outcome.WAITS),
        ((), "eA==", Outcome.WAITS),
        (("Approved",), "", Outcome.WAITS),
        (("Approved",), "eA==", Outcome.ISSUED),
        (("Denied",), "eA==", Outcome.DENIED),
        (("Approved", "Failed"), "eA==", Outcome.FAILED),
    ],
)
def test_what_became_of_it_SRV_006(
    kinds: tuple[str, ...], certificate: str, wanted: Outcome
) -> None:
    assert outcome(request(*kinds, certificate=certificate)) is wanted


def test_a_request_without_a_status_waits() -> None:
    value = {"metadata": {"name": "x"}, "spec": {"request": "", "signerName": "a/b"}}
    assert outcome(SIGNING_REQUESTS.decode(value)) is Outcome.WAITS


def test_a_refusal_is_told_with_its_reason_SRV_006() -> None:
    found = request("Approved", "Failed")
    text = "certificate signing request csr-x is failed, reason: FailedReason, message: m"
    assert why(found, Outcome.FAILED) == text
    text = "certificate signing request csr-x is denied, reason: DeniedReason, message: m"
    assert why(request("Denied"), Outcome.DENIED) == text


def test_the_certificate_is_base64() -> None:
    assert certificate_of(request("Approved", certificate="eA==")) == b"x"
    with pytest.raises(ValueError, match=r"base64|padding|alphabet"):
        certificate_of(request("Approved", certificate="?"))
