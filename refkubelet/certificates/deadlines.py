"""When a certificate is asked for, and again after a failure. Pure.

Rules: SRV-006. Upstream: client-go util/certificate/certificate_manager.go: nextRotationDeadline,
jitteryDuration, certSatisfiesTemplate, Start.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

EARLIEST: Final = 0.7
LATEST: Final = 0.9
"""The share of its life after which a certificate is replaced lies between these two: the nodes of
a cluster that began together shall not all ask at the same time."""
FIRST_PAUSE_S: Final = 2.0
LAST_PAUSE_S: Final = 32.0
JITTER: Final = 0.1
"""Of the pauses that still grow, as a share of them."""


class Wanted(Struct, frozen=True):
    """Whom a certificate shall name, and which names and addresses it shall be good for."""

    common_name: str
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """IP addresses as Python writes them."""


class Held(Struct, frozen=True):
    """What decisions need of a certificate; its times are in UTC."""

    not_before: datetime
    not_after: datetime
    common_name: str
    organizations: frozenset[str] = frozenset()
    dns_names: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()


def is_expired(held: Held, now: datetime) -> bool:
    """Whether nobody believes it any more."""
    return now > held.not_after


def fits(held: Held, wanted: Wanted) -> bool:
    """Whether it says all that is wanted; it may say more."""
    return (
        held.common_name == wanted.common_name
        and held.organizations.issuperset(wanted.organizations)
        and held.dns_names.issuperset(wanted.dns_names)
        and held.addresses.issuperset(wanted.addresses)
    )


def rotation_due(held: Held | None, wanted: Wanted | None, now: datetime, draw: float) -> datetime:
    """When the next certificate is asked for: `now` if there is none, or one that does not fit;
    else after 70 to 90 % of its life, `draw` in [0, 1) decides. `wanted` None: it is not known yet,
    and what is there does."""
    if held is None or is_expired(held, now) or (wanted is not None and not fits(held, wanted)):
        return now
    life = held.not_after - held.not_before
    return held.not_before + life * (EARLIEST + (LATEST - EARLIEST) * draw)


def pause_s(failures: int, draw: float) -> float:
    """How long to wait after so many failures in a row, from 1: 2 s, doubling, with up to 10 % more
    by `draw` in [0, 1); then 32 s each time."""
    pause = FIRST_PAUSE_S * 2.0 ** (failures - 1) if failures < 5 else LAST_PAUSE_S
    return pause if pause == LAST_PAUSE_S else pause * (1 + JITTER * draw)


def seconds_left(held: Held | None, now: datetime) -> float:
    """Whole seconds until it expires, less than 0 afterwards; infinite without one (SRV-006)."""
    if held is None:
        return float("inf")
    return float(int((held.not_after - now) / timedelta(seconds=1)))
