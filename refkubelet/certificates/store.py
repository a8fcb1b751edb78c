"""The files of one certificate in `--cert-dir`, with the names of upstream's.

Each certificate is a file of its own, together with its key: `kubelet-client-<date>.pem`, for the
kubelet's user alone. The link `kubelet-client-current.pem` leads to the newest; kubeconfigs name
the link. It is exchanged in one step, by way of a link `-updated.pem`, so that whoever reads it
finds a whole pair. What must never happen here: the link leads to a pair that cannot be used; a key
can be read by others, or is shown.
Rules: SRV-006. Upstream: client-go util/certificate/certificate_store.go.
"""

from __future__ import annotations

import os
from pathlib import Path

from refkubelet.certificates.deadlines import Held
from refkubelet.certificates.pem import PemError, held_in
from refkubelet.checkpoints.atomic_file import write_whole
from simclock import Clock

DIRECTORY_MODE = 0o755
STAMP = "%Y-%m-%d-%H-%M-%S"
Pair = tuple[Path, Path]


class CertificateError(Exception):
    """A file of a certificate cannot be used; names it, and says what to do."""


class CertificateStore:
    """The files `<name>-*.pem` of `directory`. `fallback`: certificate and key of somebody else,
    which count as long as there is no file of ours."""

    def __init__(
        self, directory: Path, name: str, clock: Clock, fallback: Pair | None = None
    ) -> None:
        self._directory = directory
        self._name = name
        self._clock = clock
        self._fallback = fallback

    @property
    def current_path(self) -> Path:
        """The link to the newest certificate; it may not be there yet."""
        return self._directory / f"{self._name}-current.pem"

    def pair(self) -> Pair | None:
        """Where the certificate and its key are; None: there are none."""
        current, fallback = self.current_path, self._fallback
        if os.path.lexists(current):
            return current, current
        if fallback is not None and all(path.exists() for path in fallback):
            return fallback
        return None

    def load(self) -> Held | None:
        """What is there from earlier; None: nothing. A change that a crash cut off is completed.
        Raises `CertificateError` for files that cannot be used."""
        self._complete()
        pair = self.pair()
        if pair is None:
            return None
        certificate, key = pair
        try:
            return held_in(certificate.read_bytes(), key.read_bytes())
        except (OSError, PemError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            files = " and ".join(str(path) for path in dict.fromkeys(pair))
            raise CertificateError(
                f"{files}: cannot be used as the kubelet's certificate: {reason}\n"
                "  put a good one there, or remove it: then the API server is asked for a new one"
            ) from None

    def update(self, certificates: bytes, key_pem: bytes) -> Held:
        """Keep a new pair, which is the current one from then on. Raises `PemError` for one that
        cannot be used, and OSError; then the old one stays."""
        certificate = held_in(certificates, key_pem)
        stamp = self._clock.local().strftime(STAMP)
        file = self._directory / f"{self._name}-{stamp}.pem"
        end = b"" if certificates.endswith(b"\n") else b"\n"
        write_whole(file, certificates + end + key_pem, directory_mode=DIRECTORY_MODE)
        updated = self._updated
        updated.unlink(missing_ok=True)
        updated.symlink_to(file)
        updated.replace(self.current_path)
        return certificate

    @property
    def _updated(self) -> Path:
        return self._directory / f"{self._name}-updated.pem"

    def _complete(self) -> None:
        """Let a link that is left of a crash become the current one, if it leads to a file."""
        updated = self._updated
        if not updated.is_symlink():
            return
        try:
            if updated.exists():
                updated.replace(self.current_path)
            else:
                updated.unlink()
        except OSError as error:
            raise CertificateError(
                f"{updated}: cannot be made the current certificate: {error.strerror}\n"
                "  let the kubelet write to its --cert-dir"
            ) from None
