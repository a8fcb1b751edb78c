"""The node's own registry credentials: the Docker configuration files of BACK-209.

Looked for as `config.json`, then as `.dockercfg`, in the given directories; the first that can be
read counts, for five minutes. What must never happen: a broken file stops a pull.
Upstream: pkg/credentialprovider/provider.go: NewDefaultDockerKeyring.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from refkubelet.runtime.image_keyring import (
    Credential,
    CredentialError,
    Keyring,
    keyring,
    node_entries,
)
from simtime import Clock

log = logging.getLogger(__name__)

LIFETIME_S: Final = 300.0
CONFIG_FILE: Final = "config.json"
LEGACY_FILE: Final = ".dockercfg"


class NodeCredentials:
    """Good for every pod of the node."""

    def __init__(self, clock: Clock, directories: tuple[Path, ...]) -> None:
        self._clock = clock
        self._directories = directories
        self._keyring = Keyring()
        self._until_s = -1.0

    def lookup(self, repository: str) -> tuple[Credential, ...]:
        """Those whose place covers the repository; the files are read again after five minutes."""
        now_s = self._clock.monotonic_s()
        if self._directories and now_s >= self._until_s:
            self._keyring, self._until_s = self._read(), now_s + LIFETIME_S
        return self._keyring.lookup(repository)

    def _read(self) -> Keyring:
        for name in (CONFIG_FILE, LEGACY_FILE):
            for directory in self._directories:
                path = directory / name
                try:
                    return keyring(node_entries(path.read_bytes(), legacy=name == LEGACY_FILE))
                except FileNotFoundError:
                    continue
                except (OSError, CredentialError) as error:
                    log.warning("no registry credentials from %s: %s", path, error)
        return Keyring()
