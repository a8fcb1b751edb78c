"""TLS versions and cipher suites: the names of the configuration, and those of OpenSSL. Pure.

Suites of TLS 1.3 are accepted and have no effect, as upstream. Suites that Go calls insecure may be
named, too, but OpenSSL may not have them any more.
Upstream: staging/src/k8s.io/component-base/cli/flag/ciphersuites_flag.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from ssl import TLSVersion
from typing import Final

VERSIONS: Final = {
    "": TLSVersion.TLSv1_2,
    "VersionTLS10": TLSVersion.TLSv1,
    "VersionTLS11": TLSVersion.TLSv1_1,
    "VersionTLS12": TLSVersion.TLSv1_2,
    "VersionTLS13": TLSVersion.TLSv1_3,
}
OF_TLS13: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}


def version_of(name: str) -> TLSVersion:
    """The lowest version that is spoken; "": TLS 1.2. Raises ValueError."""
    try:
        return VERSIONS[name]
    except KeyError:
        raise ValueError(f'unknown tls version "{name}"') from None


def cipher_string(names: Iterable[str]) -> str:
    """What OpenSSL is told of the suites below TLS 1.3; "": its defaults. Raises ValueError."""
    suites: list[str] = []
    for name in names:
        if name in OF_TLS13:
            continue
        if name not in SUITES:
            raise ValueError(f"Cipher suite {name} not supported or doesn't exist")
        suites.append(SUITES[name])
    return ":".join(dict.fromkeys(suites))
