"""What is seen of the threads of a process."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from simclock.timewarp.architectures import this_architecture
from simclock.timewarp.threads import Threads

SOON_S = 20.0


@pytest.fixture
def echo() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for a line and sends it back."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def say(process: subprocess.Popen[bytes]) -> None:
    """Have the process do something."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"x\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"x\n"


def until_rests(threads: Threads) -> None:
    """Wait until no thread has run for a moment."""
    until_s = time.monotonic() + SOON_S
    while time.monotonic() < until_s:
        assert threads.note_times()
        time.sleep(0.02)
        if threads.same_times():
            return
    pytest.fail("the process never rests")


def test_a_process_that_has_run_is_noticed(echo: subprocess.Popen[bytes]) -> None:
    threads = Threads(echo.pid, this_architecture().calls)
    say(echo)
    until_rests(threads)
    say(echo)
    assert not threads.same_times()
    before = [thread.ran for thread in threads._threads]
    until_rests(threads)
    assert [thread.ran for thread in threads._threads] != before
    threads.close()


def test_a_process_that_has_ended_is_noticed(echo: subprocess.Popen[bytes]) -> None:
    threads = Threads(echo.pid, this_architecture().calls)
    say(echo)
    until_rests(threads)
    echo.kill()
    echo.wait()
    assert not threads.same_times()
    assert not threads.note_times()
    assert not threads.alive()
    threads.close()


def test_of_our_own_process_only_the_other_threads_count() -> None:
    go, done, end = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        while not end.is_set():
            go.wait()
            go.clear()
            done.set()

    other = threading.Thread(target=work, daemon=True)
    other.start()
    own_tid = threading.get_native_id()
    threads = Threads(os.getpid(), this_architecture().calls, but=own_tid)
    until_rests(threads)  # while this thread runs
    go.set()
    assert done.wait(SOON_S)
    assert not threads.same_times()
    until_rests(threads)
    end.set()
    go.set()
    other.join()
    threads.close()
