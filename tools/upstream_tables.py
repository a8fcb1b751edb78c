"""Makes tables of what Kubernetes says beside its API types: flags, kinds, cAdvisor's metrics.

python tools/upstream_tables.py SOURCES --kubernetes 1.36.2 [--check]
python tools/upstream_tables.py --check

Each table is a text beside the module that reads it (`TABLES`). Its first lines name the version,
the digest of the files it was made of and its own; `--check` without sources looks whether that is
still right, with sources whether the sources say the same. What is read:

kubelet_flags.txt: the function that adds the kubelet's flags, and the types of its configuration.
kinds.txt: the discovery documents, and the columns that the API server's printers have.
cadvisor_metrics.txt: cAdvisor's metrics. Which of them a runtime tells, and the help, are ours:
they are kept from the table as it is.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))  # also where PYTHONSAFEPATH is set

from api_schema import OWN_DIGEST, Tree, digest_of, untouched
from go_types import GoPackage, GoTypeError, read_package

ROOT: Final = Path(__file__).parents[1]
FLAGS: Final = Path("cmd/kubelet/app/options/options.go")
CONFIGURATION: Final = Path("staging/src/k8s.io/kubelet/config/v1beta1/types.go")
LOGGING: Final = "logsapi.AddFlags"
PRINTERS: Final = Path("pkg/printers/internalversion/printers.go")
DISCOVERY: Final = Path("api/discovery")
CADVISOR: Final = Path("vendor/github.com/google/cadvisor/metrics/prometheus.go")
SERVED: Final = {
    "v1": (
        *("pods", "nodes", "namespaces", "events", "configmaps", "secrets", "services"),
        *("serviceaccounts", "persistentvolumes", "persistentvolumeclaims"),
    ),
    "coordination.k8s.io/v1": ("leases",),
    "resource.k8s.io/v1": ("resourceclaims",),
    "node.k8s.io/v1": ("runtimeclasses",),
    "scheduling.k8s.io/v1": ("priorityclasses",),
    "storage.k8s.io/v1": ("csidrivers", "csinodes", "volumeattachments"),
    "certificates.k8s.io/v1": ("certificatesigningrequests",),
    "certificates.k8s.io/v1beta1": ("clustertrustbundles",),
    "authentication.k8s.io/v1": ("tokenreviews", "selfsubjectreviews"),
    "authorization.k8s.io/v1": (
        *("subjectaccessreviews", "selfsubjectaccessreviews", "localsubjectaccessreviews"),
    ),
}
"""The kinds that the fake API server has, by group and version."""
NOT_BELOW: Final = frozenset(("attach", "exec", "finalize", "log", "portforward", "proxy"))
"""Subresources that it has not, or passes on to kubelets."""
OTHER_LABELS: Final = {"container_cpu_usage_seconds_total": "-"}
"""Labels where the runtime's are not cAdvisor's: one sum for all CPUs."""

_FLAG: Final = re.compile(r'^\tfs\.(\w+)\((.*?), "([a-z0-9-]+)",', re.MULTILINE)
_TARGET: Final = re.compile(r"&c\.([\w.]+)")
_COLUMNS: Final = re.compile(
    r"(\w+) :?= (?:append\(\w+, )?\[\]metav1\.TableColumnDefinition\{\n(.*?)\n\t\}", re.DOTALL
)
_HANDLER: Final = re.compile(r"TableHandler\((\w+), print(\w+)\)")
_WORD: Final = re.compile(r'(Name|Type|Format|Priority): "?([^",]+)')
_METRIC: Final = re.compile(
    r'name:\s+"(\w+)",\s+help:\s+"[^\n]*\n((?:\s+(?:valueType|extraLabels):[^\n]*\n)+)'
)
_PLAIN_METRIC: Final = re.compile(r'NewDesc\("(\w+)", "[^\n]*", labels, nil\)\n[^\n]*\.(\w+)Value')


def kubelet_flags(tree: Tree, before: str) -> Iterator[str]:
    """`max-pods maxPods`: a flag and its field; behind those that need no value, `switch`."""
    types = read_package("v1beta1", tree.text(CONFIGURATION))
    _, _, code = tree.text(FLAGS).partition("\nfunc AddKubeletConfigFlags")
    for method, first, flag in _FLAG.findall(code.replace("\n\t\t", " ")):
        target = _TARGET.search(first)
        if target is None:
            raise GoTypeError(f"--{flag} sets no field of the configuration: {first}")
        field = ".".join(_field_names(types, target[1].removesuffix(".Duration").split(".")))
        yield f"{flag} {field}" + (" switch" if method == "BoolVar" else "")


def _field_names(types: GoPackage, go_names: list[str]) -> Iterator[str]:
    """The names of nested fields in files."""
    owner = "KubeletConfiguration"
    for go_name in go_names:
        field = next(field for field in types.structs[owner] if field.go_name == go_name)
        owner = field.type
        yield field.name


def kinds(tree: Tree, before: str) -> Iterator[str]:
    """`v1 pods Pod short=po below=binding,status`, and a line for each column of its table."""
    printers = tree.text(PRINTERS)
    columns: dict[str, str] = {}
    for name, more in _COLUMNS.findall(printers):
        columns[name] = f"{columns.get(name, '')}{more}\n"
    handlers = {kind: columns[name] for name, kind in _HANDLER.findall(printers)}
    for served, plurals in SERVED.items():
        group, slash, version = served.rpartition("/")
        name = f"apis__{group}__{version}.json" if slash else f"api__{version}.json"
        document = json.loads(tree.text(DISCOVERY / name))
        rows = {row["name"]: row for row in document["resources"]}
        for plural in plurals:
            yield " ".join((served, plural, *_kind_words(rows, plural)))
            if "get" in rows[plural]["verbs"]:
                lines = handlers[rows[plural]["kind"]].splitlines()
                yield from (_column_line(dict(_WORD.findall(line))) for line in lines)


def _kind_words(rows: Mapping[str, Any], plural: str) -> Iterator[str]:
    row = rows[plural]
    yield row["kind"]
    if not row["namespaced"]:
        yield "cluster"
    if "get" not in row["verbs"]:
        yield "asked"
    below = {name.removeprefix(f"{plural}/") for name in rows if name.startswith(f"{plural}/")}
    for word, names in (
        ("short", row.get("shortNames", ())),
        ("below", sorted(below - NOT_BELOW)),
        ("categories", row.get("categories", ())),
    ):
        if names:
            yield f"{word}={','.join(names)}"


def _column_line(words: Mapping[str, str]) -> str:
    shape = words.get("Format", "-").replace("-", "") or "-"
    return f"  {words['Type']} {shape} {words.get('Priority', '0').strip(' }')} {words['Name']}"


def cadvisor_metrics(tree: Tree, before: str) -> Iterator[str]:
    """`container_memory_cache gauge - page cache, bytes`: name, type, labels, help."""
    text = tree.text(CADVISOR)
    metrics = {name: _metric_words(rest) for name, rest in _METRIC.findall(text)}
    plain = _PLAIN_METRIC.findall(text.replace("desc = prom", "desc := prom"))
    metrics |= {name: (kind.lower(), "-") for name, kind in plain}
    for line in before.splitlines():
        name, _, _, help_ = line.split(maxsplit=3)
        if name not in metrics:
            raise GoTypeError(f"cAdvisor has no metric {name}")
        kind, labels = metrics[name]
        yield f"{name} {kind} {OTHER_LABELS.get(name, labels)} {help_}"


def _metric_words(text: str) -> tuple[str, str]:
    kind = re.search(r"prometheus\.(\w+)Value", text)
    labels = re.search(r"\[\]string\{(.*?)\}", text)
    if kind is None:
        raise GoTypeError(f"a metric without a type: {text}")
    return kind[1].lower(), ",".join(re.findall(r'"(\w+)"', labels[1])) if labels else "-"


TABLES: Final = {
    ROOT / "refkubelet/kubelet_flags.txt": kubelet_flags,
    ROOT / "fakekubeapi/resources/kinds.txt": kinds,
    ROOT / "fakecri/calls/cadvisor_metrics.txt": cadvisor_metrics,
}


def made(path: Path, root: Path, version: str) -> str:
    """The text of that table."""
    tree = Tree(root, version)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = TABLES[path](tree, "".join(re.findall(r"^[^#].*\n", before, re.MULTILINE)))
    body = "\n".join(lines) + "\n"
    return (
        f"# Kubernetes {version}: {(TABLES[path].__doc__ or '').strip()}\n"
        f"# Made by tools/upstream_tables.py of sources with the digest {tree.digest()}\n"
        f"{OWN_DIGEST}{digest_of(body)}\n{body}"
    )


def main(words: list[str]) -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sources", type=Path, nargs="?", help="a source tree of Kubernetes")
    parser.add_argument("--kubernetes", metavar="VERSION", help="that of the sources, as 1.36.2")
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    options = parser.parse_args(words)
    if bool(options.sources) != bool(options.kubernetes) or not (options.sources or options.check):
        parser.error("wanted SOURCES and --kubernetes VERSION, or --check alone")
    wrong = 0
    for path in TABLES:
        if options.sources is None:
            if untouched(path.read_text(encoding="utf-8")):
                continue
            print(f"{path.name} was changed by hand: make it again with tools/upstream_tables.py")
        else:
            text = made(path, options.sources, options.kubernetes)
            if not options.check:
                path.write_text(text, encoding="utf-8")
                continue
            if path.read_text(encoding="utf-8") == text:
                continue
            print(f"{path.name}: the sources say otherwise")
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
