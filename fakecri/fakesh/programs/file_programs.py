"""Programs that look at the container's files and change them: `cat`, `ls`, `touch`, `test`, ...

They answer as busybox does.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Final

from fakecri.fakesh.invocations.invocation import PIECE_BYTES, Invocation, Program
from fakecri.fakesh.programs.conditions import test


def operands(run: Invocation) -> tuple[set[str], list[str]]:
    """The letters of a program's options, and its other words."""
    words, letters = list(run.command[1:]), set[str]()
    while words and words[0].startswith("-") and len(words[0]) > 1:
        word = words.pop(0)
        if word == "--":
            break
        letters |= set(word[1:])
    return letters, words


async def _cat(run: Invocation) -> int:
    code = 0
    for name in operands(run)[1] or ("-",):
        try:
            data = b"" if name == "-" else run.files.read(run.path(name), lenient=run.lenient)
            await run.stdout.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            place = "read error" if run.files.is_directory(run.path(name)) else "can't open"
            text = f"{place}: {error.strerror}"
            if place != "read error":
                text = f"{place} '{name}': {error.strerror}"
            await run.err(f"cat: {text}\n")
            code = 1
        while name == "-" and (data := await run.stdin.read(PIECE_BYTES)):
            await run.stdout.write(data)
    return code


async def _ls(run: Invocation) -> int:
    """Errors first, then files, then directories, each sorted; with several names a directory has a
    heading, and an empty line before it."""
    letters, names = operands(run)
    code = 0
    files, directories = list[str](), list[str]()
    for name in sorted(names) or ["."]:
        path = run.path(name)
        if run.files.is_directory(path) and "d" not in letters:
            directories.append(name)
        elif run.files.is_file(path, lenient=run.lenient) or run.files.is_directory(path):
            files.append(name)
        else:
            await run.err(f"ls: {name}: No such file or directory\n")
            code = 1
    for name in files:
        await run.out(_row(run, run.path(name), name, letters))
    for number, name in enumerate(directories):
        if len(names) > 1:
            await run.out(f"{chr(10) if files or number else ''}{name}:\n")
        await _list(run, run.path(name), letters)
    return code


async def _list(run: Invocation, path: str, letters: set[str]) -> None:
    for inner in run.files.names_in(path):
        if not inner.startswith(".") or letters & {"a", "A"}:
            await run.out(_row(run, posixpath.join(path, inner), inner, letters))


def _row(run: Invocation, path: str, shown: str, letters: set[str]) -> str:
    if "l" not in letters:
        return f"{shown}\n"
    kind = "drwxr-xr-x" if run.files.is_directory(path) else "-rw-r--r--"
    return f"{kind}    1 root     root     {run.files.size(path):9} Jan  1  1970 {shown}\n"


async def _each(run: Invocation, change: Callable[[str, str], None], failure: str) -> int:
    """Change each file that is named, and report those that cannot be changed."""
    code = 0
    for name in operands(run)[1]:
        try:
            change(run.path(name), name)
        except OSError as error:
            await run.err(f"{run.command[0]}: {failure.format(name)}: {error.strerror}\n")
            code = 1
    return code


async def _touch(run: Invocation) -> int:
    def touch(path: str, name: str) -> None:
        if not run.files.is_directory(path):
            run.files.open_for_writing(path, append=True)

    return await _each(run, touch, "{}")


async def _rm(run: Invocation) -> int:
    letters, _ = operands(run)

    def remove(path: str, name: str) -> None:
        if run.files.is_directory(path) and letters & {"r", "R"}:
            run.files.remove_tree(path)
        elif run.files.is_file(path, lenient=run.lenient) or "f" not in letters:
            run.files.remove(path, lenient=run.lenient)

    return await _each(run, remove, "can't remove '{}'")


async def _mkdir(run: Invocation) -> int:
    parents = "p" in operands(run)[0]
    return await _each(
        run,
        lambda path, name: run.files.make_directory(path, parents=parents),
        "can't create directory '{}'",
    )


async def _rmdir(run: Invocation) -> int:
    code = 0
    for name in operands(run)[1]:
        path = run.path(name)
        why = ""
        if not run.files.is_directory(path):
            why = "No such file or directory"
        elif run.files.names_in(path):
            why = "Directory not empty"
        else:
            try:
                run.files.remove_tree(path)
            except OSError as error:
                why = str(error.strerror)
        if why:
            await run.err(f"rmdir: '{name}': {why}\n")
            code = 1
    return code


async def _cp(run: Invocation) -> int:
    return await _to_target(run, keep=True)


async def _mv(run: Invocation) -> int:
    return await _to_target(run, keep=False)


async def _to_target(run: Invocation, *, keep: bool) -> int:
    program, names = run.command[0], operands(run)[1]
    if len(names) < 2:
        await run.err(f"{program}: missing file operand\n")
        return 1
    code, target = 0, run.path(names[-1])
    for name in names[:-1]:
        place = target
        if run.files.is_directory(target):
            place = posixpath.join(target, posixpath.basename(name))
        try:
            data = run.files.read(run.path(name), lenient=run.lenient, name=name)
            run.files.open_for_writing(place, name=place)
            run.files.append(place, data)
            if not keep:
                run.files.remove(run.path(name), lenient=run.lenient)
        except OSError as error:
            verb = "can't stat" if keep else "can't rename"
            await run.err(f"{program}: {verb} '{error.filename}': {error.strerror}\n")
            code = 1
    return code


async def _pwd(run: Invocation) -> int:
    await run.out(f"{run.cwd}\n")
    return 0


async def _sysctl(run: Invocation) -> int:
    letters, names = operands(run)
    code = 0
    for name in names:
        try:
            value = run.files.read(f"/proc/sys/{name.replace('.', '/')}").decode()
        except OSError:
            if "e" not in letters:
                await run.err(f"sysctl: error: '{name}' is an unknown key\n")
            code = 1
            continue
        await run.out(value if "n" in letters else f"{name} = {value}")
    return code


async def _quietly(run: Invocation) -> int:
    """`chmod`, `chown` and the like: there are no owners and modes, so it succeeds for a file that
    is there."""
    code = 0
    for name in operands(run)[1][1:]:
        path = run.path(name)
        if not run.security.may(run.command[0].rpartition("/")[2]):
            await run.err(f"{run.command[0]}: {name}: Operation not permitted\n")
            code = 1
            continue
        if not run.files.is_directory(path) and not run.files.is_file(path, lenient=run.lenient):
            await run.err(f"{run.command[0]}: {name}: No such file or directory\n")
            code = 1
    return code


FILE_PROGRAMS: Final[Mapping[str, Program]] = {
    "[": test,
    "[[": test,
    "cat": _cat,
    "chmod": _quietly,
    "chown": _quietly,
    "cp": _cp,
    "ls": _ls,
    "mkdir": _mkdir,
    "mv": _mv,
    "pwd": _pwd,
    "rm": _rm,
    "rmdir": _rmdir,
    "sysctl": _sysctl,
    "test": test,
    "touch": _touch,
}
