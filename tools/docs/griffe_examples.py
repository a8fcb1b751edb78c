"""An extension of griffe, which reads the docstrings for the site: examples are code.

Docstrings here are plain text with doctests; Markdown would take `[2, 3]` in one for a link.
"""

from __future__ import annotations

from typing import Any

from griffe import Extension


class Examples(Extension):
    """Puts fences around the doctests of every docstring."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for each object that it has read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with fences around its examples, which end with an empty line.

    >>> print(fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nMore."))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    More.
    """
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(">>> ") and not inside:
            lines.append("```pycon")
            inside = True
        elif not line.strip() and inside:
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)
