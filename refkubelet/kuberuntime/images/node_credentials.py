"""The node's own registry credentials, from Docker configuration files (BACK-209).

The first readable file is used, for five minutes; a broken file is skipped and never stops a pull.
Upstream: pkg/credentialprovider/provider.go: NewDefaultDockerKeyring.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from msgspec import Struct

from refkubelet.host.untrusted_files import read_whole
from refkubelet.kuberuntime.images.keyring import (
    Credential,
    CredentialError,
    Keyring,
    keyring,
    node_entries,
)
from simclock import Clock

log = logging.getLogger(__name__)

LIFETIME_S: Final = 300.0
CONFIG_FILE: Final = "config.json"
LEGACY_FILE: Final = ".dockercfg"
MAX_BYTES: Final = 1024 * 1024


class LoginDirs(Struct, frozen=True):
    """The working directory of the process, and the home of its user."""

    working: Path
    home: Path


def docker_config_files(root_dir: Path, dirs: LoginDirs | None) -> tuple[Path, ...]:
    """The files in the order of search; `dirs` None: only those in `root_dir`.

    >>> [str(p) for p in docker_config_files(Path("/r"), LoginDirs(Path("/w"), Path("/h")))[:4]]
    ['/r/config.json', '/w/config.json', '/h/.docker/config.json', '/.docker/config.json']
    """
    modern, legacy = [root_dir], [root_dir]
    if dirs is not None:
        modern += [dirs.working, dirs.home / ".docker", Path("/.docker")]
        legacy += [dirs.working, dirs.home, Path("/")]
    return (*(d / CONFIG_FILE for d in modern), *(d / LEGACY_FILE for d in legacy))


class NodeCredentials:
    """The credentials in `files`, for every pod of the node."""

    def __init__(self, clock: Clock, files: tuple[Path, ...]) -> None:
        self._clock = clock
        self._files = files
        self._keyring = Keyring()
        self._until_s = -1.0

    def lookup(self, repository: str) -> tuple[Credential, ...]:
        """The credentials for a repository; the files are read again after five minutes."""
        now_s = self._clock.monotonic_s()
        if self._files and now_s >= self._until_s:
            self._keyring, self._until_s = self._read(), now_s + LIFETIME_S
        return self._keyring.lookup(repository)

    def _read(self) -> Keyring:
        for path in self._files:
            try:
                data = read_whole(path, MAX_BYTES, follow_links=True)
                return keyring(node_entries(data, legacy=path.name == LEGACY_FILE))
            except FileNotFoundError:
                continue
            except (OSError, CredentialError) as error:
                log.warning("no registry credentials from %s: %s", path, error)
        return Keyring()
