"""`replace` of structs, with arguments that mypy checks: those of msgspec's own are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import replace as replace
else:
    from msgspec.structs import replace as replace
