"""The secrets that CSI drivers are given (NODE-217.6, NODE-222.1).

What must never happen here: what is in a secret is logged.
"""

from __future__ import annotations

import base64

from refkubelet.api.client import ApiError, ObjectReader
from refkubelet.api.kinds import SECRETS
from refkubelet.volumes.csi.mounts import SecretKey
from refkubelet.volumes.csi.names import told


class NoSecret(Exception):
    """A secret cannot be had; the text is the kubelet's."""


async def secret_data(reader: ObjectReader, key: SecretKey | None) -> dict[str, str]:
    """What the secret holds; nothing without one. Raises `NoSecret`."""
    if key is None:
        return {}
    namespace, name = key
    try:
        secret = await reader.get(SECRETS, name, namespace)
    except ApiError as error:
        why = f"failed to find the secret {name} in the namespace {namespace} with error: "
        raise NoSecret(told(f"{why}{error.message}")) from None
    data = secret.data or {}
    return {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in data.items()}
