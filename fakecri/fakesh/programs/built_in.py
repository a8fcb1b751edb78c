"""The small programs that are in every fake container; `sh` is in `fakecri.shell`.

What must never happen here: a program touches the machine it really runs on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from fakecri.fakesh.invocations.escapes import unescaped
from fakecri.fakesh.invocations.invocation import USAGE, Invocation, Program
from fakecri.process.accounts import Accounts, read_accounts


async def _echo(run: Invocation) -> int:
    words = list(run.command[1:])
    options: set[str] = set()
    while words and len(words[0]) > 1 and words[0][0] == "-" and set(words[0][1:]) <= set("neE"):
        options |= set(words.pop(0)[1:])
    text = " ".join(words)
    if "e" in options:
        ended_early, text = "\\c" in text, unescaped(text)
        options |= {"n"} if ended_early else set()
    await run.out(text + ("" if "n" in options else "\n"))
    return 0


_UNITS_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


async def _sleep(run: Invocation) -> int:
    try:
        wait_s = sum(map(_seconds, run.command[1:]))
    except ValueError:
        wait_s = -1.0
    if len(run.command) < 2 or not wait_s >= 0:
        await run.err(f"sleep: invalid number '{' '.join(run.command[1:])}'\n")
        return 1
    return await idle(run) if wait_s == float("inf") else await asyncio.sleep(wait_s, 0)


def _seconds(text: str) -> float:
    """Seconds from texts such as `5`, `0.5`, `2m`, `inf`. Raises ValueError."""
    unit = _UNITS_S.get(text[-1:], 0.0)
    return float(text[:-1]) * unit if unit else float(text)


async def idle(run: Invocation) -> int:
    """A program that runs until it is ended from outside."""
    await asyncio.get_running_loop().create_future()
    return 0


async def _env(run: Invocation) -> int:
    """`env [-i] [-u NAME] [NAME=VALUE...] [COMMAND...]`."""
    words, env = list(run.command[1:]), dict(run.env)
    while words and (words[0].startswith("-") or "=" in words[0]):
        word = words.pop(0)
        if word in ("-i", "-"):
            env = {}
        elif word == "-u" and words:
            env.pop(words.pop(0), None)
        elif word.startswith("-"):
            await run.err("env: the fake knows only: -i, -u NAME\n")
            return USAGE
        else:
            name, _, value = word.partition("=")
            env[name] = value
    if words:
        return await run.run(*words, env=env)
    await run.out("".join(f"{name}={value}\n" for name, value in env.items()))
    return 0


async def _printenv(run: Invocation) -> int:
    names = run.command[1:]
    if not names:
        return await _env(run)
    known = [name for name in names if name in run.env]
    await run.out("".join(f"{run.env[name]}\n" for name in known))
    return int(len(known) < len(names))


async def _stty(run: Invocation) -> int:
    if run.command[1:] != ("size",):
        await run.err("stty: the fake knows only: stty size\n")
        return USAGE
    if not run.tty:
        await run.err("stty: standard input: Not a tty\n")
        return 1
    await run.out(f"{run.terminal.rows} {run.terminal.columns}\n")
    return 0


_HOSTNAME: Final = "/proc/sys/kernel/hostname"


async def _hostname(run: Invocation) -> int:
    if len(run.command) > 1:
        if not run.security.may("sethostname", "SYS_ADMIN"):
            await run.err("hostname: sethostname: Operation not permitted\n")
            return 1
        run.files.put(_HOSTNAME, f"{run.command[1]}\n".encode())
        return 0
    name = run.env.get("HOSTNAME", "") + "\n"
    with suppress(OSError):
        name = run.files.read(_HOSTNAME).decode()
    await run.out(name)
    return 0


async def _id(run: Invocation) -> int:
    """`id`. As in busybox, a user or group without a name in the image is an error for `-n`."""
    own, known = run.identity, _accounts(run)
    users, names = known.user_names(), known.group_names()
    asked = "".join(sorted("".join(run.command[1:]).replace("-", "")))
    main_first = (own.gid, *(group for group in own.groups if group != own.gid))
    ids = {"u": (own.uid,), "g": (own.gid,), "G": main_first}
    if not asked:
        groups = ",".join(_named(group, names) for group in own.groups)
        shown = f"uid={_named(own.uid, users)} gid={_named(own.gid, names)} groups={groups}"
        await run.out(f"{shown}\n")
        return 0
    kind = asked.replace("n", "")
    if kind not in ids or not all(word.startswith("-") for word in run.command[1:]):
        await run.err("id: the fake knows only: -u, -g, -G, -n\n")
        return USAGE
    return await _tell_ids(run, ids[kind], users if kind == "u" else names, names="n" in asked)


def _accounts(run: Invocation) -> Accounts:
    """The users and groups of its container's files."""
    texts = [b"", b""]
    for i, path in enumerate(("/etc/passwd", "/etc/group")):
        with suppress(OSError):
            texts[i] = run.files.read(path)
    return read_accounts(*texts)


def _named(number: int, names: Mapping[int, str]) -> str:
    return f"{number}({names[number]})" if number in names else str(number)


async def _tell_ids(
    run: Invocation, ids: Iterable[int], known: Mapping[int, str], *, names: bool
) -> int:
    code, told = 0, []
    for number in ids:
        if names and number not in known:
            await run.err(f"{run.command[0]}: unknown ID {number}\n")
            code = 1
        told.append(known.get(number, str(number)) if names else str(number))
    await run.out(" ".join(told) + "\n")
    return code


async def _groups(run: Invocation) -> int:
    return await run.run("id", "-Gn")


async def _whoami(run: Invocation) -> int:
    uid, users = run.identity.uid, _accounts(run).user_names()
    if uid not in users:
        await run.err(f"whoami: unknown uid {uid}\n")
        return 1
    await run.out(f"{users[uid]}\n")
    return 0


async def _date(run: Invocation) -> int:
    """`date [-u] [+FORMAT]`: the fake's time, in UTC."""
    words = [word for word in run.command[1:] if word != "-u"]
    if len(words) > 1 or not all(word.startswith("+") for word in words):
        await run.err("date: the fake knows only: -u, +FORMAT\n")
        return 1
    shape = words[0][1:] if words and words[0].startswith("+") else "%a %b %e %H:%M:%S UTC %Y"
    now = datetime.fromtimestamp(run.now_ns() / 1e9, UTC)
    await run.out(now.strftime(shape.replace("%s", str(int(now.timestamp())))) + "\n")
    return 0


async def _uname(run: Invocation) -> int:
    names = {"": "Linux", "-s": "Linux", "-n": run.env.get("HOSTNAME", ""), "-m": "x86_64"}
    await run.out(names.get("".join(run.command[1:2]), "Linux") + "\n")
    return 0


async def _nproc(run: Invocation) -> int:
    await run.out("1\n")
    return 0


def _true(run: Invocation) -> int:
    return 0


def _false(run: Invocation) -> int:
    return 1


BUILT_IN: Final[Mapping[str, Program]] = {
    "date": _date,
    "echo": _echo,
    "env": _env,
    "false": _false,
    "groups": _groups,
    "hostname": _hostname,
    "id": _id,
    "nproc": _nproc,
    "printenv": _printenv,
    "sleep": _sleep,
    "stty": _stty,
    "top": idle,
    "true": _true,
    "uname": _uname,
    "whoami": _whoami,
}
