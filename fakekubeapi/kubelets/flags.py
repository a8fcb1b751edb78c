"""The flags of `fakekubeapi serve` about kubelets, with kube-apiserver's names."""

from __future__ import annotations

import argparse
from pathlib import Path

from fakekubeapi.kubelets.options import ADDRESS_TYPES, CredentialsError, KubeletOptions


def add_flags(serve: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = serve.add_argument_group(
        "kubelets", "to which logs, exec, attach, port-forward and proxy are passed on"
    )
    group.add_argument(
        "--kubelet-client-certificate",
        type=Path,
        metavar="FILE",
        help="what they are shown (default: with --tls or --approve-certificates one of a member "
        "of system:masters, of the same authority; else nothing)",
    )
    group.add_argument("--kubelet-client-key", type=Path, metavar="FILE", help="its key")
    group.add_argument(
        "--kubelet-certificate-authority",
        type=Path,
        metavar="FILE",
        help="verify their certificates with this authority (default: they are not verified)",
    )
    group.add_argument(
        "--kubelet-preferred-address-types",
        default=",".join(ADDRESS_TYPES),
        metavar="TYPES",
        help="which addresses of a Node are tried, the first that it has is taken "
        "(default: %(default)s)",
    )


def options_of(flags: argparse.Namespace, client_pem: str = "") -> KubeletOptions:
    """What the flags say; `client_pem` is shown where they name no certificate. Raises:
    CredentialsError."""
    types = tuple(name.strip() for name in flags.kubelet_preferred_address_types.split(","))
    if wrong := sorted(set(types) - set(ADDRESS_TYPES)):
        raise CredentialsError(
            f"--kubelet-preferred-address-types: got {', '.join(map(repr, wrong))}; "
            f"wanted some of {', '.join(ADDRESS_TYPES)}"
        )
    options = KubeletOptions(
        preferred_address_types=types,
        certificate_authority=flags.kubelet_certificate_authority,
        client_certificate=flags.kubelet_client_certificate,
        client_key=flags.kubelet_client_key,
        client_pem="" if flags.kubelet_client_certificate else client_pem,
    )
    options.check()
    return options
