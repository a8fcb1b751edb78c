"""The values of imagePullCredentialsVerificationPolicy and of its allowlist (BACK-210). Pure."""

from __future__ import annotations

from typing import Final

from refkubelet.model.image_names import InvalidImageNameError, with_default_tag, without_tag

NEVER_VERIFY: Final = "NeverVerify"
NEVER_VERIFY_PRELOADED: Final = "NeverVerifyPreloadedImages"
NEVER_VERIFY_ALLOWLISTED: Final = "NeverVerifyAllowlistedImages"
ALWAYS_VERIFY: Final = "AlwaysVerify"
POLICIES: Final = (NEVER_VERIFY, NEVER_VERIFY_PRELOADED, NEVER_VERIFY_ALLOWLISTED, ALWAYS_VERIFY)


def is_allowlist_entry(text: str) -> bool:
    """Whether the text can be in preloadedImagesVerificationAllowlist: a name without tag and
    digest, or the beginning of names up to a `/*`.

    >>> [is_allowlist_entry(t) for t in ("reg.io/app", "reg.io/*", "reg.io/app:1", "/*", "a*")]
    [True, True, False, False, False]
    """
    if text.endswith("/*"):
        return len(text) > 2 and "*" not in text[:-2] and text == text.strip()
    try:
        with_default_tag(text)
    except InvalidImageNameError:
        return False
    return without_tag(text) == text
