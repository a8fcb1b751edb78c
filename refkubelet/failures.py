"""How a loop that must go on tells that one round of it failed.

What must never happen: an exception of one pod, container or call ends a part of the kubelet.
Cancellation is no failure: catch `Exception`, which lets it pass.
"""

from __future__ import annotations

import logging


def log_failure(
    log: logging.Logger, what: str, error: Exception, *expected: type[Exception]
) -> None:
    """One line for the expected kinds (a call that failed); for any other, which nobody thought
    of, an error with its traceback."""
    if isinstance(error, expected):
        log.warning("%s: %s", what, error)
    else:
        log.error("%s: unexpected error", what, exc_info=error)
