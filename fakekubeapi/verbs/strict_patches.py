"""Patches that may not bring fields which the kind of the object does not have
(`fieldValidation=Strict`)."""

from __future__ import annotations

from typing import Any

from fakekubeapi.bodies import JSON_PATCH, STRATEGIC_PATCH, encode
from fakekubeapi.errors import invalid
from fakekubeapi.patches.go_words import as_go_prints
from fakekubeapi.requests.shapes import unknown_fields
from kubeobjects.causes import invalid_value
from kubeobjects.schema.messages import Message


def require_known_patch(message: Message, content_type: str, patch: Any, patched: Any) -> None:
    """Check a patch and what it made of the object. Raises: StatusError 422 that shows a strategic
    patch, or the object after another one, and names the unknown fields."""
    brought = patched if content_type == JSON_PATCH else patch
    strategic = content_type == STRATEGIC_PATCH
    if why := unknown_fields(brought, message, directives=strategic):
        patch_text = as_go_prints(patch) if strategic else encode(patched).decode()
        raise invalid("", "", "", [invalid_value("patch", patch_text, why)])
