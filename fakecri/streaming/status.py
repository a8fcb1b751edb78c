"""How a remote command ended, as the error channel says it (metav1.Status; CRI-115)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """`exit_code` of the command; `failure` is set instead where it could not be run."""

    exit_code: int = 0
    failure: str = ""

    def text(self) -> str:
        """One line for people; "" for success. All that the protocols before v4 carry."""
        if self.failure:
            return f"Internal error occurred: {self.failure}"
        if self.exit_code:
            return f"command terminated with non-zero exit code: exit status {self.exit_code}"
        return ""

    def to_json(self) -> bytes:
        """The Status object of v4 and v5."""
        if not self.text():
            return b'{"metadata":{},"status":"Success"}'
        status: dict[str, Any] = {"metadata": {}, "status": "Failure", "message": self.text()}
        if self.failure:
            status |= {"reason": "InternalError", "code": 500}
        else:
            cause = {"reason": "ExitCode", "message": str(self.exit_code)}
            status |= {"reason": "NonZeroExitCode", "details": {"causes": [cause]}}
        return json.dumps(status, separators=(",", ":")).encode()
