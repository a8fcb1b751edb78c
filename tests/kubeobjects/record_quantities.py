"""Records what an API server says of many texts as amounts.

python tests/kubeobjects/record_quantities.py URL [TOKEN]

Asks a kube-apiserver to create a pod with each text as a limit, which is stored in thousandths, and
as the size of an emptyDir, which is stored exactly; nothing stays there. Writes
tests/data/kubeobjects/quantities.json: the server's version, and text -> [limit, size], or the
words of the refusal.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import aiohttp

from simclock import Rng

KEPT: Final = Path(__file__).parents[1] / "data" / "kubeobjects" / "quantities.json"
PODS: Final = "/api/v1/namespaces/default/pods"
LETTERS: Final = "0123456789.+-eEinumkKMGTP "
SUFFIXES: Final = (
    *("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"),
    *("e3", "E3", "e-9", "E18", "e1", "e-12"),
)


def texts(count: int = 1500) -> list[str]:
    """Short texts of the letters of amounts, half of them right in form, and numbers of all lengths
    with all suffixes."""
    dice = Rng(1).stream("quantities")
    chosen = set(SUFFIXES) | {
        f"{sign}{suffix}" for sign in ("+", "-", ".", "1") for suffix in SUFFIXES
    }
    while len(chosen) < count // 2:
        chosen.add("".join(dice.choice(LETTERS) for _ in range(dice.randint(1, 6))))
    while len(chosen) < count:
        digits = "".join(dice.choice("0123456789") for _ in range(dice.randint(1, 21)))
        point = dice.randint(0, 2 * len(digits))
        number = f"{digits[:point]}.{digits[point:]}" if point < len(digits) else digits
        chosen.add(f"{dice.choice(('', '', '', '+'))}{number}{dice.choice(SUFFIXES)}")
    return sorted(text for text in chosen if not text.startswith("-"))


def pod_with(text: str) -> dict[str, Any]:
    """A pod in which the text is an amount of both kinds."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"memory": text}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "amounts"},
        "spec": {
            "containers": [container],
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": text}}],
        },
    }


async def ask(http: aiohttp.ClientSession, text: str) -> list[str] | str:
    """Limit and size as they are stored, or why the text is refused."""
    async with http.post(PODS, json=pod_with(text), params={"dryRun": "All"}) as answer:
        body = await answer.json()
    if answer.status == 400:
        return str(body["message"]).rpartition(": ")[2]
    if answer.status >= 300:
        raise SystemExit(f"{text!r}: {answer.status} {body.get('message')}")
    spec = body["spec"]
    limit = spec["containers"][0]["resources"]["limits"]["memory"]
    return [limit, spec["volumes"][0]["emptyDir"]["sizeLimit"]]


async def record(url: str, token: str) -> None:
    """Ask the server about all texts, and write its answers."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(url, headers=headers, connector=connector) as http:
        async with http.get("/version") as answer:
            version = (await answer.json())["gitVersion"]
        answers = {text: await ask(http, text) for text in texts()}
    KEPT.parent.mkdir(exist_ok=True)
    kept = {"kubernetes": version, "answers": answers}
    KEPT.write_text(json.dumps(kept, indent=0, ensure_ascii=False) + "\n")
    print(f"{len(answers)} texts, {sum(isinstance(a, str) for a in answers.values())} refused")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1], "".join(sys.argv[2:3])))
