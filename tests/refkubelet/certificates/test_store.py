"""The files of certificates (SRV-006)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from certificate_world import WANTED, World

from refkubelet.certificates.pem import PemError, held_in, new_key
from refkubelet.certificates.store import CertificateError

pytestmark = pytest.mark.virtual_time


async def test_a_pair_is_one_file_for_its_owner_and_a_link_leads_to_it_SRV_006(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "pki")
    assert world.store().load() is None
    held = world.hold()
    store = world.store()
    link = store.current_path
    assert link == tmp_path / "pki" / "kubelet-server-current.pem"
    file = Path(os.readlink(link))
    assert re.fullmatch(r"kubelet-server-\d{4}(-\d\d){5}\.pem", file.name)
    assert file.is_absolute()
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in file.parent.iterdir()) == sorted([file.name, link.name])
    assert held_in(link.read_bytes(), link.read_bytes()) == held == store.load()
    assert held.addresses == {"192.0.2.1"}
    assert held.dns_names == {"n"}
    assert held.common_name == WANTED.common_name
    assert held.organizations == {"system:nodes"}
    assert store.pair() == (link, link)


async def test_the_newest_is_current_and_the_old_file_stays_SRV_006(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.hold()
    first = os.readlink(world.store().current_path)
    await world.clock.sleep(1)
    world.hold(lasts_s=7200)
    assert os.readlink(world.store().current_path) != first
    assert Path(first).exists()


@pytest.mark.parametrize("text", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAA\n"])
async def test_what_cannot_be_used_is_an_error_with_what_to_do_SRV_006(
    tmp_path: Path, text: bytes
) -> None:
    world = World(tmp_path)
    world.store().current_path.write_bytes(text)
    with pytest.raises(CertificateError, match=r"kubelet-server-current\.pem: cannot be used.*\n"):
        world.store().load()


async def test_a_link_to_nothing_is_an_error_SRV_006(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.store().current_path.symlink_to(tmp_path / "gone.pem")
    with pytest.raises(CertificateError, match="No such file"):
        world.store().load()


async def test_no_key_is_ever_in_an_error(tmp_path: Path) -> None:
    world = World(tmp_path)
    certificate, key = world.issue()
    with pytest.raises(PemError, match="not that of the certificate") as told:
        world.store().update(certificate, new_key())
    assert world.store().load() is None
    assert list(tmp_path.iterdir()) == []
    assert "PRIVATE" not in str(told.value)
    world.store().current_path.write_bytes(key)
    with pytest.raises(CertificateError, match="no certificate") as refused:
        world.store().load()
    assert key.decode().splitlines()[1] not in str(refused.value)


async def test_a_change_that_a_crash_cut_off_is_completed_SRV_006(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.hold()
    current = world.store().current_path
    current.rename(tmp_path / "kubelet-server-updated.pem")
    assert world.store().load() is not None
    assert current.is_symlink()
    (tmp_path / "kubelet-server-updated.pem").symlink_to(tmp_path / "gone.pem")
    assert world.store().load() is not None
    assert not (tmp_path / "kubelet-server-updated.pem").is_symlink()


async def test_files_of_somebody_else_count_until_there_are_own_ones_SRV_006(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    pair = tmp_path / "tls.crt", tmp_path / "tls.key"
    store = world.store(fallback=pair)
    assert store.load() is None
    for path, text in zip(pair, world.issue(), strict=True):
        path.write_bytes(text)
    assert store.load() is not None
    assert store.pair() == pair
    world.hold()
    assert store.pair() == (store.current_path, store.current_path)
