"""What a script does next: `&&`, `||`, `if`, loops and `case`, and what leaves them early.

`exit`, `return`, `break` and `continue` are exceptions, raised by the commands of these names.
"""

from __future__ import annotations

import fnmatch
from typing import Protocol

from fakecri.fakesh.shell import nodes, words


class Exit(Exception):
    """`exit`: the shell ends with `code`."""

    def __init__(self, code: int, *, wrong_script: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.wrong_script = wrong_script
        """The script could not be parsed or run; on a terminal the user may go on typing."""


class Return(Exception):
    """`return`: a function ends with `code`; None: with the code of its last command."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class Break(Exception):
    """`break` or `continue`: leave `levels` loops; with `goes_on` the outermost of them starts its
    next round."""

    def __init__(self, levels: int, *, goes_on: bool) -> None:
        super().__init__(levels)
        self.levels = levels
        self.goes_on = goes_on


class Process(Protocol):
    """What is needed of a shell; `interpreter.Shell` is one."""

    code: int
    loops: int
    arguments: list[str]
    names: dict[str, str]

    def around(self) -> words.Surroundings: ...
    async def do(self, node: nodes.Node) -> int: ...
    async def condition(self, node: nodes.Node) -> bool: ...
    async def expand(self, raw: str) -> list[str]: ...


async def and_or(shell: Process, node: nodes.AndOr) -> int:
    """`a && b || c`, from left to right; the exit code of the last command that was run."""
    done = await shell.condition(node.first)
    for i, (sign, part) in enumerate(node.rest):
        if done != (sign == "&&"):
            continue
        if i + 1 < len(node.rest):
            done = await shell.condition(part)
        else:
            return await shell.do(part)
    return shell.code


async def choose(shell: Process, node: nodes.If) -> int:
    """`if`, `elif`, `else`: the exit code of the branch that was taken."""
    for condition, body in node.branches:
        if await shell.condition(condition):
            return await shell.do(body)
    return await shell.do(node.otherwise)


async def loop(shell: Process, node: nodes.Loop) -> int:
    """`while` and `until`: the exit code of the last round, 0 without one."""
    code = 0
    while await shell.condition(node.condition) != node.until:
        was_last = await _round(shell, node.body)
        code = shell.code
        if was_last:
            break
    return code


async def loop_over(shell: Process, node: nodes.For) -> int:
    """`for`, over its words or the script's arguments; the exit code of the last round."""
    values = shell.arguments
    if node.words is not None:
        values = [word for raw in node.words for word in await shell.expand(raw)]
    code = 0
    for value in list(values):
        shell.names[node.name] = value
        was_last = await _round(shell, node.body)
        code = shell.code
        if was_last:
            break
    return code


async def _round(shell: Process, body: nodes.Node) -> bool:
    """One round of a loop; whether `break` made it the last."""
    shell.loops += 1
    try:
        await shell.do(body)
    except Break as jump:
        if min(jump.levels, shell.loops) > 1:
            raise Break(jump.levels - 1, goes_on=jump.goes_on) from None
        shell.code = 0
        return not jump.goes_on
    finally:
        shell.loops -= 1
    return False


async def case(shell: Process, node: nodes.Case) -> int:
    """`case`: the exit code of the first branch with a pattern that fits, 0 without one."""
    text = await words.to_text(node.word, shell.around())
    for patterns, body in node.items:
        for raw in patterns:
            if fnmatch.fnmatchcase(text, await words.to_pattern(raw, shell.around())):
                return await shell.do(body)
    return 0
