"""Runs the steps of a transcript and writes down what kubectl says, without what differs from run
to run: times, identities, addresses."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import aiohttp
from kubectl_cluster import ADDRESS, KUBECTL, WAIT_S
from kubectl_steps import Step

_AGE: Final = r"(?:\d+[smhd]){1,2}"
_TIME: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
_FORMS: Final = (
    (rf"{_TIME}", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "TIME"),
    (r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "UID"),
    (r"(resourceVersion\"?: ?)\"\d+\"", r'\1"VERSION"'),
    (r"\beyJ[\w-]+\.[\w-]+\.[\w-]*", "TOKEN"),
    (r"\b[0-9a-f]{64}\b", "ID"),
    (r"\b(web|crash|job|echo|node-1)\.[0-9a-f]{16}\b", r"\1.HASH"),
    (r"\b(site-[0-9a-z]{6,10})-[0-9a-z]{5}\b", r"\1-NAME"),
    (r"\b10\.88\.\d+\.\d+\b", "POD-IP"),
    (r"(https?://)?127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\[::1\]:\d+", "ADDRESS"),
    (rf"\b{re.escape(ADDRESS)}\b", "NODE-IP"),
    (r"\b(v1\.\d+)\.\d+\b", r"\1.N"),
    (r"\b(LIVE|MERGED)-\d+", r"\1"),
    (rf"\(x\d+ over {_AGE}\)", "(again)"),
    (rf"(?:(?<=  )|(?<=\t)|^){_AGE}(?=\s|$)", "AGE"),
    (rf"\({_AGE} ago\)", "(AGE ago)"),
    (r"^( +(?:cpu|memory|ephemeral-storage|hugepages-\w+):) +\w+$", r"\1  AMOUNT"),
    (r"((?:Machine ID|System UUID|Boot ID):) .*", r"\1  IDENTITY"),
    (r" +AGE \(again\)", "  AGE"),
    (r"\b10\.(?:0\.0|96\.\d+)\.\d+\b", "SERVICE-IP"),
)
_PLACES: Final = tuple((re.compile(form, re.MULTILINE), shown) for form, shown in _FORMS)
_NO_OS: Final = "an operating system without os-release"
_GAP: Final = re.compile(r"(?<=\S) {2,}|\t+")
_LISTENS: Final = re.compile(r"127\.0\.0\.1:(\d+)")


def _os() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", _NO_OS)
    except OSError:
        return _NO_OS


def normalised(text: str, directory: Path) -> str:
    """The text without what differs from run to run, and with columns two blanks apart.

    >>> normalised("web   1/1  Running   5m3s", Path("/none"))
    'web  1/1  Running  AGE'
    """
    for here, shown in ((str(directory), "{dir}"), (platform.release(), "KERNEL"), (_os(), "OS")):
        text = text.replace(here, shown)
    for pattern, shown in _PLACES:
        text = pattern.sub(shown, text)
    lines = (_GAP.sub("  ", line).rstrip() for line in text.splitlines())
    return "\n".join(lines)


async def transcript(
    steps: Sequence[Step], files: Mapping[str, str], config: Path, directory: Path
) -> list[tuple[str, str]]:
    """Each command and what it said, in order. `files`: their names in `directory` -> content."""
    own = directory / "kubectl.conf"  # kubectl changes it
    shutil.copyfile(config, own)
    for name, text in files.items():
        (directory / name).write_text(text)
    found = []
    for step in steps:
        text = await _asked(step, directory) if step.ask else await _typed(step, directory)
        found.append((step.shown, text))
    return found


def _environment(step: Step, directory: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "KUBECONFIG": str(directory / "kubectl.conf"),
        "KUBE_EDITOR": f"sed -i {step.editor}",
        "LC_ALL": "C",
        "TZ": "UTC",
    }


async def _started(step: Step, directory: Path) -> asyncio.subprocess.Process:
    words = [word.replace("{dir}", str(directory)) for word in step.words]
    return await asyncio.create_subprocess_exec(
        *(KUBECTL, *words),
        stdin=asyncio.subprocess.PIPE if step.stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(step, directory),
    )


async def _typed(step: Step, directory: Path) -> str:
    process = await _started(step, directory)
    async with asyncio.timeout(2 * WAIT_S):
        out, err = await process.communicate(step.stdin.encode() or None)
    if step.silent:
        return ""
    lines = normalised(out.decode(errors="replace"), directory).splitlines()
    lines += [f"! {line}" for line in normalised(err.decode(), directory).splitlines()]
    if process.returncode:
        lines.append(f"exit {process.returncode}")
    return "\n".join(lines)


async def _asked(step: Step, directory: Path) -> str:
    """A command that listens: what it says when it does, and what it answers there."""
    process = await _started(step, directory)
    assert process.stdout is not None
    said = ""
    try:
        async with asyncio.timeout(WAIT_S):
            while not (port := _LISTENS.search(said)):
                if not (line := await process.stdout.readline()):
                    said += (await process.communicate())[1].decode()
                    return normalised(said, directory)
                said += line.decode()
            async with aiohttp.ClientSession() as http:
                url = f"http://127.0.0.1:{port[1]}{step.ask}"
                async with http.get(url) as answer:
                    said += f"< {answer.status}\n{_in_order(await answer.text())}"
    except aiohttp.ClientError as error:
        said += f"< {type(error).__name__}"
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()
    return "" if step.silent else normalised(said, directory)


def _in_order(text: str) -> str:
    """JSON with sorted names: their order is nobody's business."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text


def written(found: list[tuple[str, str]]) -> str:
    """The transcript as it is kept."""
    return "".join(
        f"$ {command}\n{text}\n\n" if text else f"$ {command}\n\n" for command, text in found
    )


def read(text: str) -> list[tuple[str, str]]:
    """A transcript that was kept."""
    return list(_parts(text))


def _parts(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split("\n$ "):
        command, _, said = part.removeprefix("$ ").partition("\n")
        yield command, said.strip("\n")
