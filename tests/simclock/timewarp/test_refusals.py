"""What cannot be in warped time is refused before it starts: one sentence, exit code 2."""

from __future__ import annotations

import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simclock.timewarp import requirements
from simclock.timewarp.architectures import X86_64
from simclock.timewarp.cli import main
from simclock.timewarp.elf import BUILD_INFO
from simclock.timewarp.refusal import CannotWarp
from simclock.timewarp.requirements import own_vdso, require_clocks

NO_PTRACE = """
import ctypes, struct, sys, os
PTRACE, REFUSE, ALLOW = 101, 0x50001, 0x7FFF0000  # EPERM
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, PTRACE), (0x06, 0, 0, REFUSE), (0x06, 0, 0, ALLOW)]
code = b"".join(struct.pack("=HBBI", *step) for step in steps)
buffer = ctypes.create_string_buffer(code, len(code))
program = struct.pack("=H6xQ", len(steps), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""A program that may not trace: system calls of that name are refused by a filter."""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The signal handlers of the tests, which the command line replaces by its own."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def refused(*command: str) -> str:
    """What the command says; it must end with 2, and after one line."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 2, ended
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert not ended.stdout
    return ended.stderr


def warped(program: Path | str) -> str:
    return refused(sys.executable, "-m", "simclock.timewarp", "--", str(program), "now")


def changed(program: Path, to: Path, at: int, content: bytes) -> Path:
    """A copy of the program with other bytes there."""
    shutil.copy(program, to)
    with to.open("r+b") as file:
        file.seek(at)
        file.write(content)
    return to


def test_a_program_of_another_architecture(sleeper: Path, tmp_path: Path) -> None:
    other = changed(sleeper, tmp_path / "other", 18, (243).to_bytes(2, "little"))
    assert f"is for riscv64; wanted one for {platform.machine()}, as this machine" in warped(other)


def test_a_program_of_a_go_that_sleeps_elsewhere(sleeper: Path, tmp_path: Path) -> None:
    image = sleeper.read_bytes()
    at = image.index(b"go1.", image.index(BUILD_INFO))
    old = changed(sleeper, tmp_path / "old", at, b"go1.9.")
    assert "was built by go1.9" in (said := warped(old))
    assert "wanted Go 1.14 or newer" in said


@pytest.mark.parametrize("content", ["", "words\n", "#!/bin/sh\n"])
def test_what_is_no_program_in_go(tmp_path: Path, content: str) -> None:
    file = tmp_path / "program"
    file.write_text(content)
    file.chmod(0o755)
    assert "wanted a program built by Go" in warped(file)
    assert f"{sys.executable} was not built by Go" in warped(sys.executable)


def test_without_the_right_to_trace(sleeper: Path) -> None:
    """As in a container without ptrace: the real call is refused."""
    if platform.machine() != "x86_64":
        pytest.skip("the filter has the numbers of x86-64")
    command = ("-m", "simclock.timewarp", "--", str(sleeper), "now")
    said = refused(sys.executable, "-c", NO_PTRACE, *command)
    assert said.startswith("timewarp: ptrace of the own program is not allowed (Operation not")
    assert "wanted root, CAP_SYS_PTRACE, or kernel.yama.ptrace_scope below 2" in said


def said_by_timewarp(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The lines on standard error, without those of gRPC: earlier tests of this process left its
    threads behind, and it tells of every fork with them."""
    return [line for line in capfd.readouterr().err.splitlines() if "fork_posix" not in line]


def test_another_machine_and_an_old_kernel(
    sleeper: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "release", lambda: "5.5.19")
    assert main(["--", str(sleeper), "now"]) == 2
    assert said_by_timewarp(capfd) == [
        "timewarp: warped time needs Linux 5.6 or newer; this is 5.5.19"
    ]
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert main(["--", str(sleeper), "now"]) == 2
    (said,) = said_by_timewarp(capfd)
    assert said.startswith(
        "timewarp: warped time is there for x86_64 only; this machine is riscv64"
    )


@pytest.mark.parametrize(
    ("release", "enough"),
    [
        ("5.5.19", False),
        ("4.19.0-26-amd64", False),
        ("5.6.0", True),
        ("6.18.44", True),
        ("?", True),
    ],
)
def test_which_kernels_are_new_enough(release: str, enough: bool) -> None:
    if enough:
        requirements.require_kernel(release)
    else:
        with pytest.raises(CannotWarp, match=f"needs Linux 5.6 or newer; this is {release}"):
            requirements.require_kernel(release)


def test_a_kernel_whose_vdso_has_no_such_clock(
    sleeper: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    image = own_vdso()
    if image is None or platform.machine() != "x86_64":
        pytest.skip("this machine has no vDSO of x86-64")
    require_clocks(image, X86_64)
    without = image.replace(b"clock_gettime", b"clock_unknown")
    for content, why in ((None, "no vDSO"), (without, "no symbol clock_gettime or __vdso_clock")):
        with pytest.raises(CannotWarp, match=why):
            require_clocks(content, X86_64)
    monkeypatch.setattr(requirements, "own_vdso", lambda: without)
    assert main(["--", str(sleeper), "now"]) == 2
    assert "no symbol clock_gettime or __vdso_clock_gettime" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("program", "options", "why"),
    [
        ("/bin/sh", ["--time", "jump"], "--time jump: /bin/sh was not built by Go"),
        ("/bin/sh", ["--speed", "20"], "--speed 20: /bin/sh was not built by Go"),
        ("refkubelet-process", ["--time", "jump"], "--time jump is for kubelets built by Go"),
        ("refkubelet-process", ["--speed", "20"], "--speed 20 is for kubelets built by Go"),
    ],
)
def test_the_suite_refuses_before_the_first_case(
    program: str, options: list[str], why: str
) -> None:
    command = (sys.executable, "-m", "kubelet_conformance.cli", "run", "--kubelet", program)
    ended = subprocess.run(
        [*command, "--runtime", "fake", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 2
    assert why in ended.stdout + ended.stderr
