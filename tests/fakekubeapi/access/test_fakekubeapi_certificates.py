"""Certificate signing requests of the fake API server."""

import base64
from typing import Any

import pytest
from fakekubeapi_helpers import MERGE_PATCH, create, ok, refused

from fakekubeapi import CertificateAuthority, FakeApi, ServerOptions, User
from simclock import RealClock

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SERVING = "kubernetes.io/kubelet-serving"
APPROVED = {"type": "Approved", "status": "True", "reason": "Test", "message": "m"}

x509 = pytest.importorskip("cryptography.x509")


def request_pem(name: str = "system:node:n") -> bytes:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    names = x509.SubjectAlternativeName([x509.DNSName("n")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    signed = builder.add_extension(names, critical=False).sign(
        ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()
    )
    return bytes(signed.public_bytes(serialization.Encoding.PEM))


def csr(pem: bytes | None = None, **spec: Any) -> dict[str, Any]:
    pem = request_pem() if pem is None else pem
    given = {
        "request": base64.b64encode(pem).decode(),
        "signerName": SERVING,
        "usages": ["digital signature", "server auth"],
        **spec,
    }
    return {"metadata": {"name": "csr-1"}, "spec": given}


async def approve(api: FakeApi, condition: dict[str, str] = APPROVED) -> dict[str, Any]:
    patch = {"status": {"conditions": [condition]}}
    path = f"{CSRS}/csr-1/approval"
    return ok(await api.request("PATCH", path, body=patch, content_type=MERGE_PATCH))


@pytest.mark.virtual_time
async def test_a_request_notes_who_made_it_and_has_no_status() -> None:
    api = FakeApi()
    body = {**csr(username="root"), "status": {"conditions": [APPROVED]}}
    answer = await api.request("POST", CSRS, body=body, user=User("alice", groups=("g",)))
    made = ok(answer)
    assert made["spec"]["username"] == "alice"
    assert made["spec"]["groups"] == ["g"]
    assert made["status"] == {}


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "spec",
    [{"request": "eA=="}, {"request": ""}, {"signerName": "x"}, {"expirationSeconds": 599}],
)
async def test_a_wrong_request_is_refused(spec: dict[str, Any]) -> None:
    refused(await FakeApi().request("POST", CSRS, body=csr(**spec)), 422, "Invalid")


@pytest.mark.virtual_time
async def test_only_approval_approves_and_nothing_takes_it_back() -> None:
    api = FakeApi()
    await create(api, CSRS, csr())
    patch = {"status": {"conditions": [APPROVED]}, "spec": {"signerName": "a.b/c"}}
    for path, code in ((f"{CSRS}/csr-1", 200), (f"{CSRS}/csr-1/status", 422)):
        answer = await api.request("PATCH", path, body=patch, content_type=MERGE_PATCH)
        assert answer.status == code
    made = ok(await api.request("GET", f"{CSRS}/csr-1"))
    assert made["status"] == {}
    assert made["spec"]["signerName"] == SERVING
    approved = await approve(api)
    (condition,) = approved["status"]["conditions"]
    assert condition["lastTransitionTime"]
    denied = {"status": {"conditions": [APPROVED, {**APPROVED, "type": "Denied"}]}}
    for body in (denied, {"status": {"conditions": []}}):
        path = f"{CSRS}/csr-1/approval"
        answer = await api.request("PATCH", path, body=body, content_type=MERGE_PATCH)
        refused(answer, 422, "Invalid")


@pytest.mark.virtual_time
async def test_an_approved_request_waits_without_an_authority() -> None:
    api = FakeApi()
    await create(api, CSRS, csr())
    await approve(api)
    assert "certificate" not in ok(await api.request("GET", f"{CSRS}/csr-1"))["status"]


@pytest.mark.virtual_time
async def test_an_authority_signs_what_is_approved() -> None:
    authority = CertificateAuthority.make(RealClock().now())
    api = FakeApi(options=ServerOptions(authority=authority))
    await create(api, CSRS, csr(expirationSeconds=3600))
    assert "certificate" not in ok(await api.request("GET", f"{CSRS}/csr-1"))["status"]
    await approve(api)
    status = ok(await api.request("GET", f"{CSRS}/csr-1"))["status"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))
    root = x509.load_pem_x509_certificate(authority.root_pem.encode())
    certificate.verify_directly_issued_by(root)
    assert certificate.subject.rfc4514_string() == "CN=system:node:n,O=system:nodes"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["n"]
    lasts = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lasts.total_seconds() == 3600 + 300


@pytest.mark.virtual_time
async def test_a_broken_request_fails_when_it_is_signed() -> None:
    api = FakeApi(options=ServerOptions(authority=CertificateAuthority.make(RealClock().now())))
    broken = b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
    await create(api, CSRS, csr(broken))
    await approve(api)
    status = ok(await api.request("GET", f"{CSRS}/csr-1"))["status"]
    assert [c["type"] for c in status["conditions"]] == ["Approved", "Failed"]


@pytest.mark.virtual_time
async def test_requests_of_other_signers_are_left_alone() -> None:
    api = FakeApi(options=ServerOptions(authority=CertificateAuthority.make(RealClock().now())))
    await create(api, CSRS, csr(signerName="example.com/mine"))
    await approve(api)
    assert "certificate" not in ok(await api.request("GET", f"{CSRS}/csr-1"))["status"]


KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
USAGES = ["digital signature", "client auth"]


def signing_api() -> FakeApi:
    return FakeApi(options=ServerOptions(authority=CertificateAuthority.make(RealClock().now())))


async def conditions(api: FakeApi, body: dict[str, Any]) -> list[dict[str, Any]]:
    await create(api, CSRS, body)
    status = ok(await api.request("GET", f"{CSRS}/csr-1"))["status"]
    return list(status.get("conditions") or [])


@pytest.mark.virtual_time
async def test_requests_of_kubelets_are_approved_and_signed_when_a_test_wants_it() -> None:
    api = signing_api()
    api.signing.approve()
    api.signing.lasts_s = 7200
    (row,) = await conditions(api, csr())
    assert (row["type"], row["status"], row["reason"]) == ("Approved", "True", "AutoApproved")
    status = ok(await api.request("GET", f"{CSRS}/csr-1"))["status"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))
    lasts = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lasts.total_seconds() == 7200 + 300


@pytest.mark.virtual_time
async def test_a_test_chooses_signers_and_may_deny_or_leave() -> None:
    api = signing_api()
    api.signing.approve(KUBELET_CLIENT)
    assert await conditions(api, csr()) == []
    api = signing_api()
    api.signing.deny(SERVING, reason="Why", message="not you")
    (row,) = await conditions(api, csr())
    assert (row["type"], row["reason"], row["message"]) == ("Denied", "Why", "not you")
    assert "certificate" not in ok(await api.request("GET", f"{CSRS}/csr-1"))["status"]
    api = signing_api()
    api.signing.approve()
    api.signing.leave(SERVING)
    assert await conditions(api, csr()) == []
    assert api.signing.verdict(KUBELET_CLIENT) is not None


def pem_of(group: str = "system:nodes", name: str = "system:node:n", names: Any = ()) -> bytes:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, group),
        x509.NameAttribute(NameOID.COMMON_NAME, name),
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return bytes(signed.public_bytes(serialization.Encoding.PEM))


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("signer", "pem", "usages", "said"),
    [
        (SERVING, pem_of(), ["digital signature", "server auth"], "is required"),
        (SERVING, request_pem(), USAGES, "usages did not match"),
        (SERVING, request_pem("kubelet"), ["digital signature", "server auth"], "common name"),
        (
            SERVING,
            pem_of(names=[x509.DNSName("n"), x509.RFC822Name("a@b.c")]),
            ["digital signature", "server auth"],
            "only DNS and IP",
        ),
        (KUBELET_CLIENT, request_pem(), USAGES, "not allowed"),
        (KUBELET_CLIENT, pem_of(group="other"), USAGES, "organization"),
        (KUBELET_CLIENT, pem_of(), ["client auth"], "usages did not match"),
    ],
    ids=[
        "serving-no-name",
        "serving-usages",
        "serving-common-name",
        "serving-mail-name",
        "client-names",
        "client-organization",
        "client-usages",
    ],
)
async def test_the_signers_of_kubelets_refuse_what_kubelets_do_not_ask(
    signer: str, pem: bytes, usages: list[str], said: str
) -> None:
    api = signing_api()
    api.signing.approve()
    rows = await conditions(api, csr(pem, signerName=signer, usages=usages))
    assert [row["type"] for row in rows] == ["Approved", "Failed"]
    assert said in rows[1]["message"]


@pytest.mark.virtual_time
async def test_the_signer_of_kubelets_signs_with_and_without_encipherment() -> None:
    for usages in (USAGES, [*USAGES, "key encipherment"]):
        api = signing_api()
        api.signing.approve()
        rows = await conditions(api, csr(pem_of(), signerName=KUBELET_CLIENT, usages=usages))
        assert [row["type"] for row in rows] == ["Approved"]
