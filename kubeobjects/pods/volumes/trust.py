"""What is wrong with certificates in volumes: bundles that a signer is trusted by, and certificates
that it gives the pod. Pure.

Upstream: pkg/apis/core/validation/names.go; validateProjectionSources.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubeobjects.causes import Cause, invalid_value, required, too_long, unsupported_value
from kubeobjects.golang.strconv import quoted
from kubeobjects.names import (
    byte_length,
    label_problems,
    qualified_name_problems,
    subdomain_problems,
)
from kubeobjects.pods.common.checks import Object, local_path, needed
from kubeobjects.selectors import selector_causes, shown_selector

KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_PATHS: Final = ("credentialBundlePath", "keyPath", "certificateChainPath")
_SHORTEST_S: Final = 3600
_LONGEST_S: Final = 91 * 24 * 3600
_LONGEST_OF_KUBERNETES_S: Final = 24 * 3600
_MAX_DOMAIN: Final = 253
_MAX_SIGNER: Final = _MAX_DOMAIN + 1 + _MAX_DOMAIN + 1 + 63
_MAX_ANNOTATIONS: Final = 256 * 1024


# -- bundles ---------------------------------------------------------------------------------------


def bundle_causes(bundle: Object, path: str) -> Iterator[Cause]:
    """What is wrong with a bundle, which is named, or chosen by signer and labels."""
    name, signer = bundle.get("name"), bundle.get("signerName")
    selector = bundle.get("labelSelector")
    if name is not None and signer is not None:
        fields_shown = {
            "Name": name,
            "SignerName": signer,
            "LabelSelector": shown_selector(selector),
            "Optional": bundle.get("optional"),
            "Path": bundle.get("path") or "",
        }
        yield invalid_value(path, fields_shown, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield required(f"{path}.name", "must be a valid object name")
        for problem in _bundle_name_problems(name):
            yield invalid_value(
                f"{path}.name", name, f"not a valid clustertrustbundlename: {problem}"
            )
        if selector is not None:
            text = "labelSelector must be unset if name is specified"
            yield invalid_value(f"{path}.labelSelector", shown_selector(selector), text)
    elif signer is not None:
        if not signer:
            yield required(f"{path}.signerName", "must be a valid signer name")
        yield from signer_causes(signer, f"{path}.signerName")
        yield from selector_causes(selector, f"{path}.labelSelector")
    else:
        yield required(path, "either name or signerName must be specified")
    yield from needed(bundle, "path", path)
    yield from local_path(bundle.get("path") or "", f"{path}.path")


def _bundle_name_problems(name: str) -> list[str]:
    """The name of a bundle is a subdomain; before it may be a signer, with colons for slashes."""
    signer, _, rest = name.rpartition(":")
    if not signer and ":" in name:
        return ['ClusterTrustBundle without signer name must not have ":" in its name']
    return subdomain_problems(rest)


def signer_causes(name: str, path: str) -> Iterator[Cause]:
    """What is wrong with the name of a signer: a domain, a slash, and names with points."""
    if not name:
        yield required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid_value(path, name, text)
        return
    if byte_length(domain) > _MAX_DOMAIN:
        yield too_long(path, _MAX_DOMAIN)
    labels = domain.split(".")
    bad = next((label for label in labels if label_problems(label)), None)
    for problem in label_problems(bad) if bad is not None else ():
        yield invalid_value(path, domain, f"validating label {quoted(bad or '')}: {problem}")
    if len(labels) < 2:
        text = "should be a domain with at least two segments separated by dots"
        yield invalid_value(path, domain, text)
    bad = next((part for part in rest.split(".") if subdomain_problems(part)), None)
    for problem in subdomain_problems(bad) if bad is not None else ():
        yield invalid_value(path, rest, f"validating label {quoted(bad or '')}: {problem}")
    if byte_length(name) > _MAX_SIGNER:
        yield too_long(path, _MAX_SIGNER)


# -- certificates ----------------------------------------------------------------------------------


def certificate_causes(certificate: Object, path: str) -> Iterator[Cause]:
    """What is wrong with a certificate that a signer gives the pod, but for its paths."""
    signer = certificate.get("signerName") or ""
    yield from signer_causes(signer, f"{path}.signerName")
    annotations = certificate.get("userAnnotations") or {}
    field = f"{path}.userAnnotations"
    for key in annotations:
        yield from _domain_key_causes(key.lower(), field)
    if sum(byte_length(key + text) for key, text in annotations.items()) > _MAX_ANNOTATIONS:
        yield too_long(field, _MAX_ANNOTATIONS)
    kind = certificate.get("keyType") or ""
    if kind not in KEY_TYPES:
        yield unsupported_value(f"{path}.keyType", kind, KEY_TYPES, free=True)
    lives_s = certificate.get("maxExpirationSeconds")
    if lives_s is None:
        return
    field, text = f"{path}.maxExpirationSeconds", "if provided, maxExpirationSeconds must be"
    if lives_s < _SHORTEST_S:
        yield invalid_value(field, lives_s, f"{text} >= {_SHORTEST_S}")
    longest_s = _LONGEST_OF_KUBERNETES_S if _is_of_kubernetes(signer) else _LONGEST_S
    if lives_s > longest_s:
        yield invalid_value(field, lives_s, f"{text} <= {longest_s}")


def certificate_paths(certificate: Object) -> list[str]:
    """The fields of a certificate that name a file, in the order of the checks."""
    return [field for field in _PATHS if certificate.get(field)]


def _is_of_kubernetes(signer: str) -> bool:
    return f".{signer.partition('/')[0]}".endswith(".kubernetes.io")


def _domain_key_causes(key: str, path: str) -> Iterator[Cause]:
    """A key that has to begin with a domain."""
    if not key:
        yield required(path)
        return
    problems = qualified_name_problems(key)
    for problem in problems:
        yield invalid_value(path, key, problem)
    if not problems and "/" not in key:
        yield invalid_value(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')
