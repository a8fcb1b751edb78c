"""Says where the project lies: `python tools/repository.py https://github.com/OWNER/refkubelet`.

`[project.urls]` of pyproject.toml is the one place. What cannot read it, because it is read where
pyproject.toml is not (the readme on PyPI, the example of a workflow and the page that shows it),
is written anew with it; so is the version that these workflows use. `--check` only says which
files are not as pyproject.toml wants them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
USED: Final = re.compile(r"\b(uses: )[\w.-]+/refkubelet@[\w.-]+")
URL: Final = re.compile(r"https://github\.com/[\w.-]+/refkubelet\b")
FILES: Final = ("pyproject.toml", "examples/ci/github.yml", "docs/tutorials/my-kubelet-in-ci.md")


def written(text: str, url: str, version: str) -> str:
    """A text with the project at `url`, and its action in that version."""
    owner_and_name = "/".join(url.rstrip("/").split("/")[-2:])
    return USED.sub(rf"\g<1>{owner_and_name}@v{version}", URL.sub(url, text))


def main(words: list[str]) -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    check = words == ["--check"]
    if not check and (len(words) != 1 or not URL.fullmatch(words[0])):
        print(__doc__, file=sys.stderr)
        return 2
    url = project["urls"]["Repository"] if check else words[0]
    version = re.sub(r"\.dev\d+$", "", project["version"])
    texts = {name: (ROOT / name).read_text() for name in FILES}
    others = [name for name, text in texts.items() if written(text, url, version) != text]
    for name in others:
        if check:
            print(f"{name} is not as [project.urls] wants it: python tools/repository.py {url}")
        else:
            (ROOT / name).write_text(written(texts[name], url, version))
            print(f"{name} is written")
    return 1 if check and others else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
