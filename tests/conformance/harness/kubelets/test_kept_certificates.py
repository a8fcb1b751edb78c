"""A kubelet's own certificate serves the later kubelets of the same binary."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubelet_conformance.harness.kubelets import certificates

BINARY = Path("/bin/kubelet")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_kept", {})


def made(directory: Path, word: str = "") -> Path:
    directory.mkdir()
    for name in certificates.FILES:
        (directory / name).write_text(word + name)
    return directory


def test_the_next_kubelet_finds_what_the_first_one_made(tmp_path: Path) -> None:
    certificates.lay(BINARY, tmp_path / "first")
    assert not (tmp_path / "first").exists()
    certificates.keep(BINARY, made(tmp_path / "first"))
    certificates.lay(BINARY, tmp_path / "next")
    found = {file.name: file.read_text() for file in (tmp_path / "next").iterdir()}
    assert found == {name: name for name in certificates.FILES}
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "next").iterdir())


def test_another_binary_makes_its_own(tmp_path: Path) -> None:
    certificates.keep(BINARY, made(tmp_path / "first"))
    certificates.lay(Path("/bin/other"), tmp_path / "next")
    assert not (tmp_path / "next").exists()


def test_a_kubelet_that_starts_again_keeps_its_own(tmp_path: Path) -> None:
    certificates.keep(BINARY, made(tmp_path / "first"))
    own = made(tmp_path / "own", "own ")
    certificates.lay(BINARY, own)
    assert (own / "kubelet.crt").read_text() == "own kubelet.crt"


def test_half_a_certificate_is_not_kept(tmp_path: Path) -> None:
    (made(tmp_path / "half") / "kubelet.key").unlink()
    certificates.keep(BINARY, tmp_path / "half")
    certificates.lay(BINARY, tmp_path / "next")
    assert not (tmp_path / "next").exists()
