"""Manifest files: which one holds which pod, and why one holds none; each text is parsed once.

Whatever a user puts into the directory is only a file if it is one when it is opened: links are
followed, and what waits or has no end is told of as such (`untrusted_files`). A text that was
refused is refused again without a look into it, and so is one that was understood.
Rules: SRC-003..006. Upstream: pkg/kubelet/config/file.go: extractFromFile.

What must never happen here: a wait; an exception for any file; the same bytes parsed twice.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from refkubelet.host.untrusted_files import NotRegularError, TooLargeError, read_whole
from refkubelet.model.objects import Pod
from refkubelet.model.pod_updates import PodSource
from refkubelet.model.yaml.document import MAX_BYTES, TOO_LARGE
from refkubelet.pods.manifest import ManifestError, read_manifest

log = logging.getLogger(__name__)

LONGEST_REASON: Final = 4000  # characters of an error that may cite the file


@dataclass(frozen=True, slots=True)
class _Known:
    """What was in a file, and its pod, or why it holds none."""

    data: bytes
    pod: Pod | None = None
    why: str = ""


class ManifestFiles:
    """`errors` maps a file to why its pod does not run, as of now; `parsed` counts the texts that
    were looked into."""

    def __init__(self, node_name: str) -> None:
        self.errors: dict[str, str] = {}
        self.parsed = 0
        self._node_name = node_name
        self._known: dict[str, _Known] = {}

    def read(self, file: str) -> Pod | None:
        """The pod of one file, or None with the reason in `errors`. Directories and special files
        are passed over silently (SRC-003)."""
        try:
            data = read_whole(file, MAX_BYTES, follow_links=True)
        except (IsADirectoryError, NotRegularError):
            self.forget(file)
            return None
        except TooLargeError:
            self.complain(file, TOO_LARGE)
            return None
        except OSError as e:
            self.complain(file, (e.strerror or str(e)).lower())
            return None
        known = self._known.get(file)
        if known is None or known.data != data:
            known = self._known[file] = self._parsed(file, data)
        if known.pod is None:
            self.complain(file, known.why)
        else:
            self.errors.pop(file, None)
        return known.pod

    def _parsed(self, file: str, data: bytes) -> _Known:
        self.parsed += 1
        try:
            pod = read_manifest(data, source=PodSource.FILE, origin=file, node_name=self._node_name)
        except ManifestError as e:
            return _Known(data, why=str(e))
        except Exception as e:  # a file that nobody thought of must not end the others' pods
            return _Known(data, why=f"unexpected error: {e!r}")
        return _Known(data, pod)

    def complain(self, file: str, why: str) -> None:
        """Log each reason once, and keep it readable."""
        if len(why) > LONGEST_REASON:
            why = f"{why[:LONGEST_REASON]}... ({len(why)} characters)"
        if self.errors.get(file) != why:
            self.errors[file] = why
            log.error("static pod file %s: %s", file, why)

    def forget(self, file: str) -> None:
        """The file is gone, or none that counts."""
        self._known.pop(file, None)
        self.errors.pop(file, None)

    def keep_only(self, files: Collection[str]) -> None:
        """Forget all others."""
        for file in (self._known.keys() | self.errors.keys()) - set(files):
            self.forget(file)
