"""Redirections: streams to and from files of the container, other streams, or nowhere."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from fakecri.fakesh.invocations.files import FileOutput
from fakecri.fakesh.invocations.invocation import Invocation
from fakecri.fakesh.shell.nodes import Redirection
from fakecri.fakesh.shell.scan import Unsupported
from fakecri.process.pipes import Discard, Output, ended, filled

_STREAMS: Final = {
    **dict.fromkeys(("/dev/stdout", "/proc/1/fd/1", "/proc/self/fd/1", "/dev/fd/1"), 1),
    **dict.fromkeys(("/dev/stderr", "/proc/1/fd/2", "/proc/self/fd/2", "/dev/fd/2"), 2),
}


def redirected(
    run: Invocation, redirections: Sequence[Redirection], targets: Sequence[str]
) -> Invocation:
    """The invocation with its streams changed, in order. Raises OSError with the name of a file
    that cannot be opened, Unsupported."""
    streams: dict[int, Any] = {0: run.stdin, 1: run.stdout, 2: run.stderr}
    for redirection, target in zip(redirections, targets, strict=True):
        number, sign = redirection.descriptor, redirection.sign
        if sign in (">&", "<&"):
            if target not in ("0", "1", "2", "-"):
                raise Unsupported(f"the fake's sh does not know {sign}{target}")
            closed = ended() if sign == "<&" else Discard()
            streams[number] = closed if target == "-" else streams[int(target)]
        elif sign == "<<":
            streams[0] = filled(target.encode(errors="surrogateescape"))
        elif sign == "<":
            streams[0] = run.stdin if target == "/dev/stdin" else filled(_read(run, target))
        else:
            streams[number] = _output(run, streams, target, append=sign == ">>")
    return replace(run, stdin=streams[0], stdout=streams[1], stderr=streams[2])


def _read(run: Invocation, name: str) -> bytes:
    if run.files.is_directory(run.path(name)):
        return b""
    return run.files.read(run.path(name), lenient=run.lenient, name=name)


def _output(run: Invocation, streams: dict[int, Any], name: str, *, append: bool) -> Output:
    path = run.path(name)
    if name and path in _STREAMS:
        output: Output = streams[_STREAMS[path]]
        return output
    return opened_for_writing(run, name, append=append)


def opened_for_writing(run: Invocation, name: str, *, append: bool) -> Output:
    """An output that writes to a file of the container. Raises OSError."""
    if not name:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), "")
    path = run.path(name)
    run.files.open_for_writing(path, append=append, name=name)
    return FileOutput(run.files, path)
