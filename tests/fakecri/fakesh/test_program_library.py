"""The programs that every container has, and the terminals and pipes that they write to."""

from __future__ import annotations

import asyncio
import io
import tarfile

import pytest

from fakecri.fakesh import PROGRAMS, Invocation
from fakecri.process.pipes import Terminal, TerminalOutput, Valve

pytestmark = pytest.mark.virtual_time


class Recorded:
    """An output that keeps what is written."""

    def __init__(self) -> None:
        self.data = b""

    async def write(self, data: bytes) -> None:
        self.data += data


async def run(*command: str, stdin: bytes = b"", tty: bool = False) -> tuple[int, bytes, bytes]:
    """Run a program: its exit code, stdout and stderr."""
    reader = asyncio.StreamReader()
    reader.feed_data(stdin)
    reader.feed_eof()
    out, err = Recorded(), Recorded()
    terminal = Terminal()
    terminal.resize(80, 24)
    outer = Invocation(
        ("x",),
        env={"HOSTNAME": "web", "A": "1"},
        stdin=reader,
        stdout=out,
        stderr=err,
        tty=tty,
        terminal=terminal,
        programs=PROGRAMS,
    )
    return await outer.run(*command), out.data, err.data


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("echo", "a", "b"), (0, b"a b\n", b"")),
        (("/bin/echo", "-n", "a"), (0, b"a", b"")),
        (("cat",), (0, b"in\n", b"")),
        (("true",), (0, b"", b"")),
        (("false",), (1, b"", b"")),
        (("env",), (0, b"HOSTNAME=web\nA=1\n", b"")),
        (("hostname",), (0, b"web\n", b"")),
        (("sleep", "100000"), (0, b"", b"")),
        (("cat", "/x"), (1, b"", b"cat: can't open '/x': No such file or directory\n")),
        (("sleep", "x"), (1, b"", b"sleep: invalid number 'x'\n")),
        (("sleep", "-1"), (1, b"", b"sleep: invalid number '-1'\n")),
        (("stty", "size"), (1, b"", b"stty: standard input: Not a tty\n")),
        (("stty", "-a"), (2, b"", b"stty: the fake knows only: stty size\n")),
        (("nope",), (127, b"", b"sh: nope: not found\n")),
        (("sh", "-c", "exit 3"), (3, b"", b"")),
        (("sh", "-c", "echo a; false"), (1, b"a\n", b"")),
        (("sh", "-c", "false && echo a || echo b"), (0, b"b\n", b"")),
        (("sh", "-c", "true && echo $A \"$A\" '$A' ${A}x"), (0, b"1 1 $A 1x\n", b"")),
        (("sh", "-c", "false; echo $?"), (0, b"1\n", b"")),
        (("sh", "-c", "echo e >&2; exit"), (0, b"", b"e\n")),
        (("sh", "-c", "echo $0 $1", "n", "one"), (0, b"n one\n", b"")),
        (("sh", "-c", "sh -c 'exit 4'"), (4, b"", b"")),
        (("sh", "-c", "exit x"), (2, b"", b"")),
        (("sh", "-c"), (2, b"", b"sh: -c requires an argument\n")),
        (("sh", "/x"), (2, b"", b"sh: can't open '/x': No such file or directory\n")),
        (("sh", "-c", "a <<< b"), (2, b"", b"sh: the fake's sh does not know <<<\n")),
        (("sh", "-c", "'a"), (2, b"", b"sh: syntax error: unterminated quoted string\n")),
        (("sh", "-c", "&& a"), (2, b"", b'sh: syntax error: unexpected "&&"\n')),
    ],
)
async def test_programs(command: tuple[str, ...], expected: tuple[int, bytes, bytes]) -> None:
    assert await run(*command, stdin=b"in\n") == expected


async def test_sh_runs_the_lines_of_its_input() -> None:
    assert await run("sh", stdin=b"echo a\nfalse\n") == (1, b"a\n", b"")
    assert await run("sh", stdin=b"exit 7\necho a\n") == (7, b"", b"")
    assert await run("sh", stdin=b"echo a", tty=True) == (0, b"/ # a\n/ # ", b"")


async def test_stty_knows_the_size_of_the_terminal() -> None:
    assert await run("stty", "size", tty=True) == (0, b"24 80\n", b"")


async def test_a_terminal_follows_resize_messages() -> None:
    terminal, messages = Terminal(), asyncio.StreamReader()
    messages.feed_data(b'{"Width":80,"Height":24}\n{"Width":1')
    messages.feed_data(b'00,"Height":30} {"Width":"x"} 7')
    messages.feed_eof()
    await terminal.follow(messages)
    await terminal.changed()
    assert (terminal.columns, terminal.rows) == (100, 30)


async def test_lines_on_a_terminal_end_with_cr_lf() -> None:
    out = Recorded()
    await TerminalOutput(out).write(b"a\nb\r\n")
    assert out.data == b"a\r\nb\r\n"


async def test_the_valve_is_shut_while_some_reader_is_full() -> None:
    moves: list[str] = []
    valve = Valve(lambda: moves.append("shut"), lambda: moves.append("open"))
    one, two = valve.reader(), valve.reader()
    for reader in (one, two):
        reader.feed_data(bytes(600 * 1024))
    await one.read(600 * 1024)
    assert moves == ["shut"]
    valve.open_for(two)  # it is gone
    assert moves == ["shut", "open"]


async def test_tar_packs_and_unpacks_files_and_directories() -> None:
    script = (
        "mkdir -p a/b && echo one >a/x && echo two >a/b/y && tar cf - a | tar xmf - -C /tmp && "
        "cat /tmp/a/x /tmp/a/b/y && tar -cf all.tar a/x && tar tf all.tar && "
        "tar cf - a | tar -xf - -C /tmp a/b/y && ls /tmp/a"
    )
    code, out, err = await run("sh", "-c", script)
    assert (code, out, err) == (0, b"one\ntwo\na/x\nb\nx\n", b"")


async def test_tar_takes_what_kubectl_sends_and_leaves_what_leads_out() -> None:
    place = io.BytesIO()
    with tarfile.open(fileobj=place, mode="w") as archive:
        for name in ("sub/in", "../out"):
            member = tarfile.TarInfo(name)
            member.size = 2
            archive.addfile(member, io.BytesIO(b"hi"))
    command = ("tar", "-xmf", "-", "-C", "/tmp", "--no-same-owner")
    code, out, err = await run(*command, stdin=place.getvalue())
    assert (code, out, err) == (0, b"", b"tar: name with '..' skipped: '../out'\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("cf", "-", "/none"), 1, b"tar: /none: No such file or directory\n"),
        (("cf", "-"), 1, b"tar: empty archive\n"),
        (("czf", "-", "a"), 2, b"tar: the fake knows only: c, x or t"),
        (("f", "-"), 2, b"tar: the fake knows only: c, x or t"),
        (("xf", "/none.tar"), 1, b"tar: "),
        (("xf", "-"), 1, b"tar: invalid tar header checksum\n"),
    ],
)
async def test_tar_says_what_is_wrong(words: tuple[str, ...], code: int, said: bytes) -> None:
    found, _, err = await run("tar", *words, stdin=b"no archive" * 100)
    assert found == code
    assert err.startswith(said)
