"""Follows one CertificateSigningRequest until it is decided, for at most 15 minutes.

A server that does not answer for a while costs nothing but time: the request is there, and is
looked for again.
Rules: SRV-006. Upstream: client-go util/certificate/csr/csr.go: WaitForCertificate.
"""

from __future__ import annotations

import asyncio
from typing import Final

from lightkube.models.certificates_v1 import CertificateSigningRequest

from refkubelet.api.client import ApiClient, ApiError
from refkubelet.api.kinds import SIGNING_REQUESTS
from refkubelet.api.paths import named
from refkubelet.certificates.requests import Outcome, certificate_of, outcome, why
from refkubelet.failures import Complaints
from simclock import Clock

SIGNED_WITHIN_S: Final = 15 * 60.0
AGAIN_S: Final = 1.0
"""Between two looks at a request that cannot be watched."""


class RequestError(Exception):
    """No usable certificate came of a request; the text says why."""


async def issued(
    api: ApiClient,
    request: CertificateSigningRequest,
    clock: Clock,
    complaints: Complaints,
    within_s: float = SIGNED_WITHIN_S,
) -> bytes:
    """The certificates as PEM, once they are there. Raises `RequestError` when the request is
    refused or deleted, or not decided in that time."""
    name = name_of(request)
    complaint = f"the certificate signing request {name} cannot be followed"
    try:
        async with asyncio.timeout(within_s):
            while True:
                try:
                    pem = await _decided(api, request)
                except ApiError as error:
                    complaints.failed(complaint, error, ApiError)
                else:
                    complaints.over(complaint)
                    if pem is not None:
                        return pem
                await clock.sleep(AGAIN_S)
    except TimeoutError:
        raise RequestError(
            f"certificate signing request {name} was not signed within {within_s / 60:g} minutes"
        ) from None


async def _decided(api: ApiClient, request: CertificateSigningRequest) -> bytes | None:
    """List, then watch; None: the watch has ended, and it is not decided yet. Raises `ApiError`,
    `RequestError`."""
    name, uid = name_of(request), _uid(request)
    listed = await api.list(SIGNING_REQUESTS, fields=named(name))
    own_request = next((item for item in listed.items if _uid(item) == uid), None)
    if own_request is None:
        raise _gone(name)
    if (pem := _result(own_request)) is not None:
        return pem
    version = listed.resource_version
    async for event in api.watch(SIGNING_REQUESTS, version, fields=named(name)):
        if event.type == "BOOKMARK" or _uid(event.object) != uid:
            continue
        if event.type == "DELETED":
            raise _gone(name)
        if (pem := _result(event.object)) is not None:
            return pem
    return None


def _gone(name: str) -> RequestError:
    return RequestError(f"certificate signing request {name} was deleted")


def _result(request: CertificateSigningRequest) -> bytes | None:
    """The certificates; None: it is not decided. Raises `RequestError`."""
    match outcome(request):
        case Outcome.WAITS:
            return None
        case Outcome.ISSUED:
            try:
                return certificate_of(request)
            except ValueError:
                name = name_of(request)
                raise RequestError(f"{name}: its certificate is not base64") from None
        case refused:
            raise RequestError(why(request, refused))


def name_of(request: CertificateSigningRequest) -> str:
    """Its name."""
    return str(request.metadata.name) if request.metadata is not None else ""


def _uid(request: CertificateSigningRequest) -> str:
    return str(request.metadata.uid) if request.metadata is not None else ""
