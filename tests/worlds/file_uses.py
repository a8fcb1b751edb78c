"""Where code touches files: calls that open, look at, list, change or remove what has a path."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_OS: Final = """
access chdir chmod chown fwalk lchmod lchown link listdir listxattr lstat makedirs mkdir mkfifo
mknod open pathconf readlink remove removedirs removexattr rename renames replace rmdir scandir
setxattr getxattr stat statvfs symlink truncate unlink utime walk"""
_OS_PATH: Final = """
exists getatime getctime getmtime getsize isdir isfile islink ismount lexists realpath samefile"""
_METHODS: Final = """
chmod exists glob hardlink_to is_block_device is_char_device is_dir is_fifo is_file is_mount
is_socket is_symlink iterdir lchmod lstat mkdir open read_bytes read_text readlink rename
resolve rglob rmdir samefile stat symlink_to touch unlink walk write_bytes write_text"""
OS: Final = frozenset(_OS.split())
OS_PATH: Final = frozenset(_OS_PATH.split())
METHODS: Final = frozenset(_METHODS.split())
"""Of pathlib.Path and os.DirEntry; others that have one of these names count as well."""
MODULES: Final = frozenset({"shutil", "glob", "fileinput", "linecache", "tempfile"})
"""All that these offer touches files."""
_OF_RECORDS: Final = ("dataclasses", "copy", "msgspec.structs")
OPENERS: Final = frozenset({"open", "gzip.open", "io.open", "codecs.open", "bz2.open", "lzma.open"})


def touches_files(called: str, arguments: int) -> bool:
    """Whether a call of that name, as it is written, with so many positional arguments, touches
    files.

    >>> touches_files("os.fwalk", 1), touches_files("path.iterdir", 0), touches_files("sorted", 1)
    (True, True, False)
    """
    module, _, name = called.rpartition(".")
    if called in OPENERS or module.split(".")[0] in MODULES:
        return True
    if module in ("os", "posix"):
        return name in OS
    if module == "os.path":
        return name in OS_PATH
    if name == "replace":  # of a path; those of texts have two arguments
        return bool(module) and arguments == 1 and module not in _OF_RECORDS
    if name == "walk" and module == "ast":
        return False
    return bool(module) and name in METHODS


def file_uses(source: str) -> Iterator[tuple[str, str]]:
    """The function (`Class.method`; "" for the module's own code) and the call, as written, of each
    place in the source that touches files; also a function of these that is handed on uncalled, and
    one that is imported by its own name."""
    yield from _uses(ast.parse(source), "")


def _uses(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{function}.{child.name}".lstrip(".")
        if isinstance(child, ast.Call):
            written = ast.unparse(child.func)
            if touches_files(written, len(child.args)):
                yield function, written
        elif isinstance(child, ast.Attribute) and not _is_called(child, node):
            written = ast.unparse(child)
            if written.startswith(("os.", "shutil.")) and touches_files(written, 1):
                yield function, written
        elif isinstance(child, ast.ImportFrom) and child.module in ("os", "os.path", *MODULES):
            for name in child.names:
                if touches_files(f"{child.module}.{name.name}", 1):
                    yield function, f"{child.module}.{name.name}"
        yield from _uses(child, inside)


def _is_called(child: ast.AST, above: ast.AST) -> bool:
    return isinstance(above, ast.Call) and above.func is child


def uses_below(directory: Path) -> dict[str, list[str]]:
    """`module.py: function` -> the calls, of all Python files below a directory."""
    found: dict[str, list[str]] = {}
    for path in sorted(directory.rglob("*.py")):
        for function, call in file_uses(path.read_text()):
            found.setdefault(f"{path.relative_to(directory)}: {function}", []).append(call)
    return found
