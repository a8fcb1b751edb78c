"""Reads manifest files: the pod of each file, or the error. The same content is parsed only once.

Links are followed. Only regular files are read, since a fifo would never answer and a device might
never end (`refkubelet.host.untrusted_files`). While the bytes of a file stay the same, so does its
result, the pod or the error.
Rules: SRC-003..006. Upstream: pkg/kubelet/config/file.go: extractFromFile.

What must never happen here: a wait; an exception for any file; the same bytes parsed twice.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from typing import Final

from msgspec import Struct

from kubeobjects.yaml.document import MAX_BYTES, TOO_LARGE
from refkubelet.host.untrusted_files import NotRegularError, TooLargeError, read_whole
from refkubelet.model.objects import Pod
from refkubelet.model.pod_updates import PodSource
from refkubelet.pods.manifest import ManifestError, read_manifest

log = logging.getLogger(__name__)

LONGEST_REASON: Final = 4000  # characters of an error that may cite the file


class _Parsed(Struct, frozen=True):
    """The bytes of a file, and its pod or the error `why`."""

    data: bytes
    pod: Pod | None = None
    why: str = ""


class ManifestFiles:
    """Reads manifests and keeps their results. `errors`: file -> why it has no pod now; `parsed`:
    how often a file was parsed."""

    def __init__(self, node_name: str) -> None:
        self.errors: dict[str, str] = {}
        self.parsed = 0
        self._node_name = node_name
        self._known: dict[str, _Parsed] = {}

    def read(self, file: str) -> Pod | None:
        """The pod of one file, or None with the reason in `errors`. Directories and special files
        give None without a reason (SRC-003), as does a file that is gone by now: editors and
        `sed -i` make such files. A link to nothing has one."""
        try:
            data = read_whole(file, MAX_BYTES, follow_links=True)
        except (IsADirectoryError, NotRegularError):
            self.forget(file)
            return None
        except TooLargeError:
            self.complain(file, TOO_LARGE)
            return None
        except OSError as e:
            if isinstance(e, FileNotFoundError) and not os.path.lexists(file):
                self.forget(file)
                return None
            self.complain(file, (e.strerror or str(e)).lower())
            return None
        parsed = self._known.get(file)
        if parsed is None or parsed.data != data:
            parsed = self._known[file] = self._parsed(file, data)
        if parsed.pod is None:
            self.complain(file, parsed.why)
        else:
            self.errors.pop(file, None)
        return parsed.pod

    def _parsed(self, file: str, data: bytes) -> _Parsed:
        self.parsed += 1
        try:
            pod = read_manifest(data, source=PodSource.FILE, origin=file, node_name=self._node_name)
        except ManifestError as e:
            return _Parsed(data, why=str(e))
        except Exception as e:  # no text may end the pods of other files
            return _Parsed(data, why=f"unexpected error: {e!r}")
        return _Parsed(data, pod)

    def complain(self, file: str, why: str) -> None:
        """Record why a file has no pod, and log a new reason. Long reasons are cut."""
        if len(why) > LONGEST_REASON:
            why = f"{why[:LONGEST_REASON]}... ({len(why)} characters)"
        if self.errors.get(file) != why:
            self.errors[file] = why
            log.error("static pod file %s: %s", file, why)

    def forget(self, file: str) -> None:
        """Drop the result and the error of a file."""
        self._known.pop(file, None)
        self.errors.pop(file, None)

    def keep_only(self, files: Collection[str]) -> None:
        """Forget all files but these."""
        for file in (self._known.keys() | self.errors.keys()) - set(files):
            self.forget(file)
