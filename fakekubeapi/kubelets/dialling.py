"""Connections to where requests are passed on."""

from __future__ import annotations

import asyncio
import ssl

from fakekubeapi.kubelets.options import KubeletOptions, context
from fakekubeapi.kubelets.places import Place


def trust(place: Place, options: KubeletOptions) -> ssl.SSLContext:
    """How to speak TLS there: with a kubelet as the options say, with others, and where the client
    does not care, without a look at the certificate, as upstream does."""
    if not place.kubelet:
        return context(None)
    return options.verifying if place.verified else options.careless


async def connection(
    place: Place, options: KubeletOptions, *, limit: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, over TLS where the place wants it. Raises: OSError, TimeoutError."""
    secure = place.scheme == "https"
    try:
        async with asyncio.timeout(options.connect_s):
            return await asyncio.open_connection(
                place.host,
                place.port or (443 if secure else 80),
                ssl=trust(place, options) if secure else None,
                limit=limit,
            )
    except TimeoutError:
        raise TimeoutError(f"dial tcp {place.address}: i/o timeout") from None
    except OSError as error:
        raise OSError(said(place, error)) from None


def said(place: Place, error: OSError) -> str:
    """Why a connection failed, as a Go program says it."""
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {place.address}: connect: connection refused"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {error.verify_message}"
    return f"dial tcp {place.address}: {error.strerror or error}"
