"""The one error of this package."""

from __future__ import annotations


class CannotWarp(Exception):
    """This program or this machine cannot be in warped time. The text is one sentence that says
    what was wanted and what was found."""
