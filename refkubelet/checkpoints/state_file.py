"""Reading and writing the state files of the managers, and what is wrong with one.

A file is replaced as a whole, so that a kubelet that is killed leaves the old one or the new one.
Upstream: pkg/kubelet/checkpointmanager; pkg/kubelet/util/store/filestore.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from refkubelet.checkpoints.atomic_file import write_whole
from refkubelet.checkpoints.content import StateFileError, drain_and_delete

log = logging.getLogger(__name__)

F = TypeVar("F", bound=msgspec.Struct)
S = TypeVar("S")


class StateFile(Struct, Generic[F, S], frozen=True):
    """The file of a manager of a `kind`, `CPU` or `memory`. `shape`: its JSON; `encode` and
    `decode`: between JSON and the state, with the policy's name."""

    path: Path
    kind: str
    policy: str
    shape: type[F]
    encode: Callable[[str, S], F]
    decode: Callable[[F, str], S]

    def restore(self, first: S) -> S:
        """The state in the file; the first one, written, where there is no file. Raises ValueError:
        the start failure."""
        try:
            file = self._read()
            if file is not None:
                return self.decode(file, self.policy)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._replace(first)
        except (StateFileError, OSError) as error:
            text = f"could not restore state from checkpoint: {error}"
            raise ValueError(self.refusal(text)) from None
        return first

    def restore_checked(self, first: S, check: Callable[[S], S]) -> S:
        """As `restore`, but the state that `check` makes of it, which is written where it differs.
        `check` raises `StateFileError` for a state of another machine: a start failure, too."""
        restored = self.restore(first)
        try:
            state = check(restored)
        except StateFileError as error:
            raise ValueError(self.refusal(str(error))) from None
        if state is not restored:
            self.store(state)
        return state

    def refusal(self, text: str) -> str:
        """Why the kubelet does not start, and what to do."""
        problem = f"start {self.kind.lower()} manager error: {text}"
        return drain_and_delete(problem, f"the {self.kind} manager", str(self.path))

    def store(self, state: S) -> None:
        """Write the state; a failure is logged, as pods are running already."""
        try:
            self._replace(state)
        except OSError as error:
            log.error("cannot write the state to %s: %s", self.path, error)

    def _read(self) -> F | None:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=self.shape)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StateFileError(str(error)) from None

    def _replace(self, state: S) -> None:
        write_whole(self.path, msgspec.json.encode(self.encode(self.policy, state)))
