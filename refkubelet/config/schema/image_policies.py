"""What imagePullCredentialsVerificationPolicy and its allowlist mean (BACK-210). Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from refkubelet.model.image_names import InvalidImageNameError, with_default_tag, without_tag

NEVER_VERIFY: Final = "NeverVerify"
NEVER_VERIFY_PRELOADED: Final = "NeverVerifyPreloadedImages"
NEVER_VERIFY_ALLOWLISTED: Final = "NeverVerifyAllowlistedImages"
ALWAYS_VERIFY: Final = "AlwaysVerify"
POLICIES: Final = (NEVER_VERIFY, NEVER_VERIFY_PRELOADED, NEVER_VERIFY_ALLOWLISTED, ALWAYS_VERIFY)


def is_allowlist_entry(text: str) -> bool:
    """Whether the text is valid in preloadedImagesVerificationAllowlist: a name without tag and
    digest, or a prefix of names that ends with `/*`.

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


class VerificationPolicy(Struct, frozen=True):
    """imagePullCredentialsVerificationPolicy, and preloadedImagesVerificationAllowlist."""

    policy: str = NEVER_VERIFY_PRELOADED
    allowlist: tuple[str, ...] = ()

    def verifies(self, image: str, *, pulled_by_kubelet: bool) -> bool:
        """Whether a pod has to show that it may use the present image.

        >>> VerificationPolicy().verifies("a:1", pulled_by_kubelet=False)
        False
        """
        if self.policy == NEVER_VERIFY_PRELOADED:
            return pulled_by_kubelet
        if self.policy == NEVER_VERIFY_ALLOWLISTED:
            return not self._is_listed(without_tag(image))
        return self.policy != NEVER_VERIFY

    def _is_listed(self, name: str) -> bool:
        return any(
            name.startswith(entry[:-1]) if entry.endswith("/*") else name == entry
            for entry in self.allowlist
        )
