"""Which versions of drivers are taken, and what is said of others (NODE-216.1)."""

from __future__ import annotations

import pytest

from refkubelet.volumes.csi.versions import VersionError, highest_supported


@pytest.mark.parametrize(
    ("versions", "wanted"),
    [
        (["1.0.0"], (1, 0, 0)),
        (["v1.2", "1.10.1"], (1, 10, 1)),
        (["0.3.0", "1.0.0", "2.0.0"], (1, 0, 0)),
        ([" 1.5-beta "], (1, 5)),
        (["nonsense", "1.0.0"], (1, 0, 0)),
    ],
)
def test_the_highest_first_version_counts_NODE_216(
    versions: list[str], wanted: tuple[int, ...]
) -> None:
    assert highest_supported(versions) == wanted


NOT_FOUND = "could not find a highest supported version from versions"


@pytest.mark.parametrize(
    ("versions", "wanted"),
    [
        (["2.0.0"], f"{NOT_FOUND} ([2.0.0]) reported: <nil>"),
        (["x", "2.0.0"], f'{NOT_FOUND} ([x 2.0.0]) reported: could not parse "x" as version'),
        (["1"], f'{NOT_FOUND} ([1]) reported: illegal version string "1"'),
        (
            ["01.2"],
            f"{NOT_FOUND} ([01.2]) reported: illegal zero-prefixed version component "
            '"01" in "01.2"',
        ),
        (["0.3.0", "0.2.0"], "highest supported version reported is 0.3.0, must be v1.x"),
    ],
)
def test_what_is_said_of_others_NODE_216(versions: list[str], wanted: str) -> None:
    with pytest.raises(VersionError) as caught:
        highest_supported(versions)
    assert str(caught.value) == wanted
