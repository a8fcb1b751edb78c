"""How commands start quickly: many imports without the garbage collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["many_imports"]


@contextmanager
def many_imports() -> Iterator[None]:
    """Import many modules without looking for garbage meanwhile, which takes a fifth of the time.

    Modules and classes stay for ever, so what is there at the end is not looked through later
    either, unless nothing was imported. A collector that the caller has switched off stays off.
    """
    was_on, before = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.freeze()
        if was_on:
            gc.enable()
