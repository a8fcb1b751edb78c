"""The kubelet's certificates from the API server (SRV-004 to SRV-006).

What a kubelet asks for, when, and what it keeps can be seen at the API server and in --cert-dir; no
case looks at a handshake, since the kubelet of a virtual run has no socket, and the API server of
the suite no TLS.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from itertools import pairwise
from typing import Any

from fakekubeapi import CertificateAuthority
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.kubelets.base import READ_ONLY
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, RESTART, LONG = Feature.API, Feature.STATUS, Feature.RESTART, Feature.VIRTUAL_TIME
CSRS = "/certificatesigningrequests$"
SERVING = "kubernetes.io/kubelet-serving"
CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
CURRENT = "kubelet-server-current.pem"
GROUP = "system:nodes"
ASKS_S = 20.0
"""So long it may take until a kubelet that has started asks: it may try before its Node has
addresses, and again after a pause."""
BACKDATED_S = 300
LASTS_S = 600
LIFE_S = BACKDATED_S + LASTS_S
"""Certificates begin five minutes before they are signed, as kube-controller-manager makes them."""


def sign(node: Node, lasts_s: int = 24 * 3600) -> None:
    """From now on the API server approves and signs what kubelets ask for."""
    fake = node.api.fake
    if fake.authority is None:
        fake.authority = CertificateAuthority.make(datetime.fromtimestamp(node.unix_s, UTC))
    fake.signing.lasts_s = lasts_s
    fake.signing.approve()


def posted(node: Node, signer: str = SERVING) -> list[Any]:
    """The kubelet's requests for such certificates that were accepted, in order."""
    requests = node.api.requests("POST", CSRS)
    return [r for r in requests if r.status == 201 and r.body["spec"]["signerName"] == signer]


async def asked(node: Node, count: int = 1, signer: str = SERVING, within_s: float = ASKS_S) -> Any:
    """The last of so many requests, once there are that many."""
    await node.run_until(
        lambda: len(posted(node, signer)) >= count,
        within_s=within_s,
        what=f"{count} requests for {signer}",
    )
    return posted(node, signer)[count - 1]


async def has_certificate(node: Node) -> None:
    """Wait until the kubelet has stored a certificate for serving."""
    await node.run_until(
        node.kubelet.certificate_file(CURRENT).exists, within_s=ASKS_S, what=f"{CURRENT} there"
    )


def request_in(record: Any) -> Any:
    """The certificate request of a recorded request, decoded."""
    from cryptography import x509

    return x509.load_pem_x509_csr(base64.b64decode(record.body["spec"]["request"]))


def names_in(request: Any) -> tuple[set[str], set[str]]:
    """Its DNS names and its IP addresses."""
    from cryptography import x509

    try:
        kind = x509.SubjectAlternativeName
        names = request.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return set(), set()
    addresses = {str(each) for each in names.get_values_for_type(x509.IPAddress)}
    return set(names.get_values_for_type(x509.DNSName)), addresses


def check_spec(node: Node, record: Any, purpose: str) -> None:
    """The request names the node, and its usages are those of a key that does not encipher."""
    spec, metadata = record.body["spec"], record.body["metadata"]
    expect_equal(node, metadata.get("generateName"), "csr-", "generateName")
    usages = ["digital signature", purpose]
    expect_equal(node, sorted(spec["usages"]), sorted(usages), "usages")
    request = request_in(record)
    subject = sorted(each.rfc4514_string() for each in request.subject.rdns)
    expected_subject = [f"CN=system:node:{node.name}", "O=system:nodes"]
    expect_equal(node, subject, expected_subject, "subject")
    curve = getattr(getattr(request.public_key(), "curve", None), "name", "no curve")
    expect_equal(node, curve, "secp256r1", "curve of the key")


@conformance(
    id="certificate-serving-asked",
    rules=["SRV-004.1", "SRV-004.2"],
    needs=[API, STATUS],
    node_config={"serverTLSBootstrap": True},
)
async def a_certificate_for_serving_names_the_node(node: Node) -> None:
    """With serverTLSBootstrap the kubelet asks for a certificate with the names and addresses of
    its node."""
    record = await asked(node)
    check_spec(node, record, "server auth")
    await node.run_until(lambda: node.api.node_status("addresses"), within_s=ASKS_S)
    rows = node.api.node_status("addresses")
    addresses = {row["address"] for row in rows if row["type"] in ("InternalIP", "ExternalIP")}
    names = {row["address"] for row in rows if row["type"] not in ("InternalIP", "ExternalIP")}
    expect(node, bool(addresses), "a node with addresses", rows)
    expect_equal(node, names_in(request_in(record)), (names, addresses), "alternative names")
    expect_equal(node, len(posted(node, CLIENT)), 0, "requests for client certificates")


@conformance(
    id="certificate-client-asked",
    rules=["SRV-005.1"],
    needs=[API, STATUS],
    node_config={"rotateCertificates": True},
)
async def a_client_certificate_names_the_node(node: Node) -> None:
    """With rotateCertificates a kubelet without a client certificate asks for one."""
    record = await asked(node, signer=CLIENT)
    check_spec(node, record, "client auth")
    expect_equal(node, names_in(request_in(record)), (set(), set()), "alternative names")
    expect_equal(node, len(posted(node)), 0, "requests for serving")


@conformance(
    id="certificate-not-asked", rules=["SRV-004.1", "SRV-005.1"], needs=[API, STATUS], alone=True
)  # fmt: skip
async def nothing_is_asked_for_unless_it_is_configured(node: Node) -> None:
    """By default a kubelet asks for no certificates."""
    await node.run_for(ASKS_S)
    expect_equal(node, len(node.api.requests("POST", CSRS)), 0, "requests")


@conformance(
    id="certificate-kept",
    rules=["SRV-006.3", "SRV-006.4"],
    needs=[API, STATUS, RESTART],
)
async def a_certificate_is_kept_over_a_restart(node: Node) -> None:
    """The certificate and its key are a file for the kubelet alone, to which a link leads; after a
    restart it is used, and none is asked for."""
    sign(node)
    await node.kubelet.restart(serverTLSBootstrap=True)
    await has_certificate(node)
    link = node.kubelet.certificate_file(CURRENT)
    expect(node, link.is_symlink(), "a link", link)
    file = link.resolve()
    expect_equal(node, file.stat().st_mode & 0o777, 0o600, "mode of the file")
    named = file.name.removeprefix("kubelet-server-").removesuffix(".pem")
    try:
        datetime.strptime(named, "%Y-%m-%d-%H-%M-%S")
    except ValueError:
        expect(node, False, "kubelet-server-<YYYY-MM-DD-hh-mm-ss>.pem", file.name)
    kinds = [line for line in file.read_text().splitlines() if line.startswith("-----BEGIN")]
    expect_equal(node, kinds[0], "-----BEGIN CERTIFICATE-----", "first block")
    expect(node, "PRIVATE KEY" in kinds[-1], "a key behind it", kinds)
    await node.kubelet.restart()
    await node.run_for(ASKS_S)
    expect_equal(node, len(posted(node)), 1, "requests")
    expect_equal(node, link.resolve(), file, "current file")


@conformance(
    id="certificate-key-secret", rules=["SRV-006.7", "SRV-006.3"], needs=[API, STATUS, RESTART]
)
async def keys_are_in_their_file_alone(node: Node) -> None:
    """The key of a certificate is neither in what the kubelet sends, shows or logs, nor in another
    file of the directory of certificates or the root directory."""
    sign(node)
    await node.kubelet.restart(serverTLSBootstrap=True)
    await has_certificate(node)
    link = node.kubelet.certificate_file(CURRENT)
    secret = link.read_text().rpartition("-----BEGIN ")[2].splitlines()[1]
    expect(node, len(secret) > 30, "a line of the key", len(secret))
    sent = [str(r.body) for r in node.api.requests("POST", ".", of_users=False)]
    shown = (await node.kubelet.get("/configz")).text
    texts = [*sent, shown, *node.kept_log()]
    expect(node, not any(secret in text for text in texts), "no text that has the key")
    own = link.resolve()
    above = (link.parent, node.machine.directory("root"))
    files = {f.resolve() for top in above for f in top.rglob("*") if f.is_file()}
    others = [str(f) for f in files - {own} if secret.encode() in f.read_bytes()]
    expect_equal(node, others, [], "other files that have the key")
    await node.kubelet.restart()
    await node.run_for(ASKS_S)
    shown = (await node.kubelet.get("/configz")).text
    told = secret in shown or any(secret in line for line in node.kept_log())
    expect(node, not told, "nothing of the key after a restart, either")


def lay_certificate(node: Node, addresses: list[str]) -> None:
    """Let the kubelet find a certificate for serving, of this node and these addresses."""
    file = node.kubelet.certificate_file(CURRENT)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(made_pair(node, addresses)))


def made_pair(
    node: Node,
    addresses: list[str],
    *,
    common_name: str = "",
    organizations: Sequence[str] = (GROUP,),
    names: Sequence[str] = (),
) -> tuple[bytes, bytes]:
    """A certificate for serving and its key, as PEM. Unless another name is given it is this
    node's."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    common_name = common_name or f"system:node:{node.name}"
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    alternatives: list[Any] = [x509.DNSName(n) for n in names or (node.name, "another.example")]
    alternatives += [x509.IPAddress(ip_address(each)) for each in addresses]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    moment = datetime.fromtimestamp(node.unix_s, UTC)
    usages = ("digital signature", "server auth")
    certificate = CertificateAuthority.make(moment).sign(pem, usages, moment)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return certificate.encode(), secret


@conformance(
    id="certificate-lacks-address",
    rules=["SRV-004.3", "SRV-006.4"],
    needs=[API, STATUS, RESTART],
)
async def one_that_lacks_an_address_is_replaced_at_once(node: Node) -> None:
    """A stored certificate without an address of the node is replaced at once; one with a name too
    many is not."""
    await node.run_until(lambda: node.api.node_status("addresses"), within_s=ASKS_S)
    rows = node.api.node_status("addresses")
    addresses = [row["address"] for row in rows if row["type"] == "InternalIP"]
    await node.kubelet.stop()
    lay_certificate(node, [*addresses, "192.0.2.99"])
    await node.kubelet.start(serverTLSBootstrap=True)
    await node.run_for(ASKS_S)
    expect_equal(node, len(posted(node)), 0, "requests with a certificate that has all")
    await node.kubelet.stop()
    lay_certificate(node, ["192.0.2.99"])
    await node.kubelet.start()
    await asked(node)


@conformance(
    id="certificate-replaced",
    rules=["SRV-006.1", "SRV-006.3"],
    needs=[API, STATUS, RESTART, LONG],
)
async def a_certificate_is_replaced_before_its_end(node: Node) -> None:
    """The next certificate is asked for after 70 to 90 percent of the life of the last, with
    another key; the old file stays."""
    sign(node, LASTS_S)
    await node.kubelet.restart(serverTLSBootstrap=True)
    first = await asked(node)
    second = await asked(node, 2, within_s=LIFE_S)
    share = (second.started_s - first.started_s + BACKDATED_S) / LIFE_S
    expect(node, 0.69 <= share <= 0.91, "asked after 70 to 90 % of its life", share)
    keys = {request_in(each).public_key().public_numbers() for each in (first, second)}
    expect_equal(node, len(keys), 2, "keys")

    def files() -> int:
        return len(list(node.kubelet.certificate_file("").glob("kubelet-server-2*.pem")))

    await node.run_until(lambda: files() == 2, within_s=ASKS_S, what="two files")


@conformance(
    id="certificate-replaced-in-time", rules=["SRV-006.1"], needs=[API, STATUS, RESTART, LONG]
)
async def a_restart_puts_off_no_replacement(node: Node) -> None:
    """A kubelet that is started again when its certificate is nearly due replaces it before 90
    percent of its life are over: the life counts, not what was left of it at the start."""
    sign(node, LASTS_S)
    await node.kubelet.restart(serverTLSBootstrap=True)
    first = await asked(node)
    await has_certificate(node)
    await node.kubelet.stop()
    await node.run_for(0.69 * LIFE_S - BACKDATED_S)
    await node.kubelet.start()
    second = await asked(node, 2, within_s=0.25 * LIFE_S)
    share = (second.started_s - first.started_s + BACKDATED_S) / LIFE_S
    expect(node, 0.68 <= share <= 0.91, "asked after 70 to 90 % of its life", share)


@conformance(
    id="certificate-expired",
    rules=["SRV-006.1"],
    needs=[API, STATUS, RESTART, LONG],
)
async def one_that_has_expired_counts_as_none(node: Node) -> None:
    """A kubelet that was stopped until its certificate expired asks for another at once."""
    sign(node, LASTS_S)
    await node.kubelet.restart(serverTLSBootstrap=True)
    await has_certificate(node)
    await node.kubelet.stop()
    await node.run_for(LIFE_S)
    await node.kubelet.start()
    await asked(node, 2)


@conformance(
    id="certificate-denied",
    rules=["SRV-006.2"],
    needs=[API, STATUS, RESTART, LONG],
)
async def a_denied_request_is_made_anew(node: Node) -> None:
    """After a denial the kubelet asks again, with another key and after pauses that double from two
    seconds to 32."""
    node.api.fake.signing.deny(reason="NotThisNode", message="go away")
    await node.kubelet.restart(serverTLSBootstrap=True)
    await asked(node, 7, within_s=200)
    times = [record.started_s for record in posted(node)]
    pauses = [after - before for before, after in pairwise(times)]
    for pause, expected_s in zip(pauses, (2, 4, 8, 16, 32, 32), strict=False):
        near = expected_s - 0.1 <= pause <= 1.15 * expected_s + 1.5
        expect(node, near, f"a pause of {expected_s} s", pauses)
    keys = {request_in(each).public_key().public_numbers() for each in posted(node)}
    expect_equal(node, len(keys), len(times), "keys")


@conformance(
    id="certificate-undecided",
    rules=["SRV-006.2"],
    needs=[API, STATUS, RESTART, LONG],
)
async def a_request_that_nobody_decides_is_given_up(node: Node) -> None:
    """A request that is neither approved nor denied is followed for a quarter of an hour; then
    another is made."""
    await node.kubelet.restart(serverTLSBootstrap=True)
    first = await asked(node)
    await node.run_for(14.5 * 60)
    expect_equal(node, len(posted(node)), 1, "requests before a quarter of an hour")
    second = await asked(node, 2, within_s=60)
    waited_s = second.started_s - first.started_s
    expect(node, 15 * 60 <= waited_s <= 15 * 60 + 10, "15 minutes", waited_s)


@conformance(
    id="certificate-server-away",
    rules=["SRV-006.2"],
    needs=[API, STATUS, RESTART],
)
async def a_request_outlives_an_outage(node: Node) -> None:
    """A request that is approved while the API server cannot be reached is found afterwards: no
    second one is made."""
    await node.kubelet.restart(serverTLSBootstrap=True)
    await asked(node)
    with node.api.down():
        await node.run_for(5)
    sign(node)
    (csr,) = node.api.fake.store.items("certificatesigningrequests.certificates.k8s.io")
    row = {"type": "Approved", "status": "True", "reason": "Late", "message": "by the case"}
    path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{csr['metadata']['name']}"
    patch = {"status": {"conditions": [row]}}
    await node.api.send("PATCH", f"{path}/approval", patch, "application/merge-patch+json")
    await node.run_until(
        node.kubelet.certificate_file(CURRENT).exists, within_s=90, what=f"{CURRENT} there"
    )
    expect_equal(node, len(posted(node)), 1, "requests")


@conformance(
    id="certificate-unreadable",
    rules=["SRV-006.5"],
    needs=[API, STATUS, RESTART],
)
async def files_that_cannot_be_used_end_the_start(node: Node) -> None:
    """A kubelet whose stored certificate cannot be read does not start, and names the file or what
    is wrong with it."""
    link = node.kubelet.certificate_file(CURRENT)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.write_text("no certificate")
    error_text = await node.kubelet.refused_start(serverTLSBootstrap=True)
    expect(node, "certificate" in error_text, "what is wrong", error_text)


@conformance(
    id="certificate-metrics",
    rules=["SRV-006.6"],
    needs=[API, STATUS, RESTART],
)
async def metrics_tell_how_long_a_certificate_lasts(node: Node) -> None:
    """The metrics have the seconds until the certificates expire, infinitely many without one, and
    the failures."""
    await node.kubelet.restart(serverTLSBootstrap=True, rotateCertificates=True, enableServer=True)
    await asked(node)
    text = (await node.kubelet.get("/metrics", port=READ_ONLY)).text
    for kind in ("client", "server"):
        line = f"kubelet_certificate_manager_{kind}_ttl_seconds +Inf"
        expect(node, line in text, line, _about(text))
    sign(node, LASTS_S)
    await node.kubelet.restart()
    await has_certificate(node)
    text = (await node.kubelet.get("/metrics", port=READ_ONLY)).text
    (line,) = [metric for metric in text.splitlines() if metric.startswith(_TTL)]
    left_s = float(line.split()[-1])
    expect(node, LASTS_S - ASKS_S - 10 <= left_s <= LASTS_S, "seconds left", line)
    for name in ("certificate_manager_client_expiration_renew_errors",
                 "server_expiration_renew_errors",
                 "certificate_manager_server_rotation_seconds"):  # fmt: skip
        expect(node, f"kubelet_{name}" in text, name, _about(text))


_TTL = "kubelet_certificate_manager_server_ttl_seconds"


def _about(text: str) -> list[str]:
    return [line for line in text.splitlines() if "certificate" in line or "renew" in line]
