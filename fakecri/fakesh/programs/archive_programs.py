"""`tar`, as far as `kubectl cp` and scripts need it: whole archives, from the input and to the
output or a file, without compression, owners and times."""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fakecri.fakesh.invocations.invocation import PIECE_BYTES, USAGE, Invocation, Program
from fakecri.fakesh.programs.text_programs import failed

_ACTIONS: Final = frozenset("cxt")
_IGNORED: Final = frozenset("mpov")
_KNOWN: Final = "tar: the fake knows only: c, x or t with f FILE and C DIR (and m, o, p, v)\n"
_EMPTY: Final = "tar: empty archive\n"


@dataclass
class _Asked:
    """What a command line says."""

    action: str = ""
    file: str = "-"
    directory: str = "."
    names: list[str] = field(default_factory=list)


def _read(words: list[str]) -> _Asked | None:
    """None: something the fake does not know."""
    asked, first = _Asked(), True
    while words:
        word = words.pop(0)
        letters = word[1:] if word.startswith("-") and len(word) > 1 else word if first else ""
        if word.startswith("--"):
            if word not in ("--no-same-permissions", "--no-same-owner"):
                return None
        elif not letters:
            asked.names.append(word)
        elif not _take(asked, letters, words):
            return None
        first = False
    return asked if asked.action else None


def _take(asked: _Asked, letters: str, words: list[str]) -> bool:
    for letter in letters:
        if letter in _ACTIONS and asked.action in ("", letter):
            asked.action = letter
        elif letter == "f" and words:
            asked.file = words.pop(0)
        elif letter == "C" and words:
            asked.directory = words.pop(0)
        elif letter not in _IGNORED:
            return False
    return True


async def _tar(run: Invocation) -> int:
    asked = _read(list(run.command[1:]))
    if asked is None:
        await run.err(_KNOWN)
        return USAGE
    try:
        return await (_pack if asked.action == "c" else _unpack)(run, asked)
    except tarfile.TarError:
        await run.err("tar: invalid tar header checksum\n")
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        return await failed(run, error)


async def _pack(run: Invocation, asked: _Asked) -> int:
    if not asked.names:
        await run.err(_EMPTY)
        return 1
    code, place = 0, io.BytesIO()
    with tarfile.open(fileobj=place, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in asked.names:
            path = run.path(posixpath.join(asked.directory, name))
            if not run.files.is_directory(path) and not run.files.is_file(path):
                await run.err(f"tar: {name}: No such file or directory\n")
                code = 1
                continue
            if name.startswith("/"):
                await run.err("tar: removing leading '/' from member names\n")
            for shown, inside in _below(run, name.lstrip("/") or ".", path):
                _add(run, archive, shown, inside)
    await _write(run, asked.file, place.getvalue())
    return code


def _below(run: Invocation, name: str, path: str) -> Iterator[tuple[str, str]]:
    """A file or directory and all below it: the name in the archive and the path."""
    yield name, path
    if run.files.is_directory(path):
        for inside in run.files.names_in(path):
            yield from _below(run, f"{name}/{inside}", posixpath.join(path, inside))


def _add(run: Invocation, archive: tarfile.TarFile, name: str, path: str) -> None:
    member = tarfile.TarInfo(name)
    if run.files.is_directory(path):
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(member)
        return
    data = run.files.read(path)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


async def _unpack(run: Invocation, asked: _Asked) -> int:
    data = bytearray()
    if asked.file == "-":
        while piece := await run.stdin.read(PIECE_BYTES):
            data += piece
    else:
        data += run.files.read(run.path(asked.file), name=asked.file)
    with tarfile.open(fileobj=io.BytesIO(bytes(data)), mode="r:") as archive:
        for member in archive:
            if asked.names and member.name not in asked.names:
                continue
            if asked.action == "t":
                await run.out(f"{member.name}{'/' if member.isdir() else ''}\n")
            elif ".." in member.name.split("/"):
                await run.err(f"tar: name with '..' skipped: '{member.name}'\n")
            else:
                _put(run, asked.directory, archive, member)
    return 0


def _put(
    run: Invocation, directory: str, archive: tarfile.TarFile, member: tarfile.TarInfo
) -> None:
    """Make what the archive has there; links and devices are left out."""
    name = member.name.lstrip("/")
    path = run.path(posixpath.join(directory, name))
    if member.isdir():
        run.files.make_directory(path, parents=True, name=name)
    elif (content := archive.extractfile(member)) is not None:
        run.files.make_directory(posixpath.dirname(path), parents=True, name=name)
        run.files.open_for_writing(path, append=False, name=name)
        run.files.append(path, content.read())


async def _write(run: Invocation, file: str, data: bytes) -> None:
    if file == "-":
        await run.stdout.write(data)
        return
    path = run.path(file)
    run.files.open_for_writing(path, append=False, name=file)
    run.files.append(path, data)


ARCHIVE_PROGRAMS: Final[Mapping[str, Program]] = {"tar": _tar}
