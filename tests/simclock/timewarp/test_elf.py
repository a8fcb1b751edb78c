"""What is read from ELF files, and which programs and machines are refused."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from go_programs import built

from simclock.timewarp import architectures, requirements, tracing
from simclock.timewarp.elf import BUILD_INFO, go_program
from simclock.timewarp.refusal import CannotWarp
from simclock.timewarp.requirements import require, why_not


def test_a_go_program_tells_its_compiler(sleeper: Path) -> None:
    found = require(str(sleeper))
    told = subprocess.run(["go", "version"], check=True, capture_output=True, text=True).stdout
    assert found.version == told.split()[2]
    assert why_not(str(sleeper)) == ""


def test_stripped_programs_are_known_too(tmp_path: Path) -> None:
    program = built(tmp_path / "stripped", "-ldflags=-s -w")
    assert require(str(program)).version.startswith("go1.")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is no ELF file"),
        (b"#!/bin/sh\n", "is a script"),
        (b"plain words", "is no ELF file"),
        (b"\x7fELF\x01\x01" + bytes(60), "not a 64-bit little-endian program"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / "program"
    file.write_bytes(content)
    assert why in why_not(str(file))


def test_programs_not_in_go_are_refused() -> None:
    assert "was not built by Go" in why_not(sys.executable)
    assert "cannot be read: No such file" in why_not("/no/such/program")


def test_go_that_is_too_old_is_refused(sleeper: Path) -> None:
    image = sleeper.read_bytes()
    at = image.index(BUILD_INFO)
    at = image.index(b"go1.", at)
    old = image[:at] + b"go1.9." + image[at + 6 :]
    with pytest.raises(CannotWarp, match=r"was built by go1\.9.*wanted Go 1\.14 or newer"):
        go_program(old, "old")


def test_programs_for_other_machines_are_refused(sleeper: Path, tmp_path: Path) -> None:
    image = bytearray(sleeper.read_bytes())
    image[18:20] = (183).to_bytes(2, "little")
    (tmp_path / "arm").write_bytes(image)
    assert "is for aarch64; wanted one for x86_64" in why_not(str(tmp_path / "arm"))


def test_machines_without_a_clock_are_refused(
    sleeper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(architectures.platform, "machine", lambda: "riscv64")
    assert "for x86_64 only; this machine is riscv64" in why_not(str(sleeper))
    monkeypatch.setattr(architectures.platform, "system", lambda: "Darwin")
    assert "needs Linux; this is Darwin" in why_not(str(sleeper))


def test_old_kernels_are_refused(sleeper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.platform, "release", lambda: "5.4.0-generic")
    assert "needs Linux 5.6 or newer; this is 5.4.0-generic" in why_not(str(sleeper))


def test_without_the_right_to_trace_the_reason_is_told(
    sleeper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(tracing, "_ptrace", refuse)
    assert "ptrace of the own program is not allowed (Operation not" in why_not(str(sleeper))
