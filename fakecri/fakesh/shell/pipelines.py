"""Commands with other streams than those of the shell: pipelines and redirections."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Protocol

from fakecri.fakesh.invocations.invocation import BROKEN_PIPE, Invocation
from fakecri.fakesh.shell import nodes, words
from fakecri.fakesh.shell.redirections import redirected
from fakecri.process.pipes import BytePipe


class Process(Protocol):
    """What is needed of a shell; `interpreter.Shell` is one."""

    run: Invocation
    options: set[str]

    def around(self) -> words.Surroundings: ...
    def copy(self, run: Invocation) -> Process: ...
    async def do(self, node: nodes.Node) -> int: ...
    async def run_node(self, node: nodes.Node) -> int: ...
    async def checked(self, code: int) -> int: ...
    async def condition(self, node: nodes.Node) -> bool: ...


async def pipe(shell: Process, node: nodes.Pipeline) -> int:
    """Run the parts at the same time, each reading what the one before writes. The exit code is
    that of the last part; with `pipefail` that of the last part that failed."""
    if len(node.parts) == 1:
        code = await shell.do(node.parts[0]) if not node.negated else None
        return int(await shell.condition(node.parts[0])) if code is None else code
    tasks: list[asyncio.Task[int]] = []
    source: BytePipe | None = None
    for i, part in enumerate(node.parts):
        target = BytePipe() if i + 1 < len(node.parts) else None
        run = shell.run if source is None else replace(shell.run, stdin=source.reader)
        inner = shell.copy(run if target is None else replace(run, stdout=target))
        tasks.append(asyncio.create_task(_piped(inner, part, source, target)))
        source = target
    try:
        codes = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    code = codes[-1]
    if "pipefail" in shell.options:
        code = next((one for one in reversed(codes) if one), 0)
    code = int(not code) if node.negated else code
    return code if node.negated else await shell.checked(code)


async def redirect(shell: Process, node: nodes.Redirected) -> int:
    """Run a command with other streams. A target that cannot be opened is exit code 1."""
    targets = [await words.to_text(r.target, shell.around()) for r in node.redirections]
    try:
        run = redirected(shell.run, node.redirections, targets)
    except OSError as error:
        reads = any(
            r.sign == "<" and target == error.filename
            for r, target in zip(node.redirections, targets, strict=True)
        )
        verb = "open" if reads else "create"
        await shell.run.err(f"sh: can't {verb} {error.filename}: {error.strerror}\n")
        return await shell.checked(1)
    outer, shell.run = shell.run, run
    try:
        code = await shell.do(node.inner)
    finally:
        if not (isinstance(node.inner, nodes.Command) and node.inner.words == ("exec",)):
            shell.run = replace(outer, cwd=shell.run.cwd)
    return code


async def _piped(
    shell: Process, node: nodes.Node, source: BytePipe | None, target: BytePipe | None
) -> int:
    """Run one part of a pipeline; when it ends, so do the pipes that it writes to and reads
    from."""
    try:
        return await shell.run_node(node)
    except BrokenPipeError:
        return BROKEN_PIPE
    finally:
        if target is not None:
            target.close()
        if source is not None:
            source.stop_reading()
