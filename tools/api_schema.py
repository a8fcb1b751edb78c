"""Makes the table of Kubernetes' API types that kubeobjects.schema reads.

python tools/api_schema.py SOURCES --kubernetes 1.36.2 [--check]
python tools/api_schema.py --check

SOURCES is a source tree of that version. The tags of its Go types say names, numbers, types and
what is written; the OpenAPI documents say how lists and maps are merged and what is required; the
.proto files must agree. Writes kubeobjects/schema/kubernetes-<minor>.txt; `--check` only compares,
and ends with 1 where the table is another one. The table's first lines name the version, the digest
of what it was made of and its own; without sources `--check` looks whether that is still right, so
that nothing is written into a table by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))  # also where PYTHONSAFEPATH is set

from go_types import GoField, GoPackage, GoSources, GoTypeError, Resolved, read_package

TABLES: Final = Path(__file__).parents[1] / "kubeobjects" / "schema"
STAGING: Final = Path("staging/src/k8s.io")
VERSION: Final = STAGING / "component-base/version/base.go"
META: Final = "meta.v1"
SERVED: Final = (
    *("authentication.v1", "authorization.v1", "certificates.v1", "certificates.v1beta1"),
    *("coordination.v1", "core.v1", "discovery.v1", "events.v1", META, "node.v1", "policy.v1"),
    *("resource.v1", "scheduling.v1", "storage.v1"),
)
"""The groups and versions that the fake API server serves, and what all of them use."""
SCALARS: Final = {
    ("", "[]byte"): "bytes",
    (META, "Time"): "Time",
    (META, "MicroTime"): "MicroTime",
    (META, "FieldsV1"): "FieldsV1",
    ("api.resource", "Quantity"): "Quantity",
    ("util.intstr", "IntOrString"): "IntOrString",
    ("pkg.runtime", "RawExtension"): "RawExtension",
}
"""Types, by package and name, that have no fields of their own in the table."""
OWN_DIGEST: Final = "# Digest of what follows: "
ZEROS: Final = {"bool": "false", "*bool": "null"}
"""What fields are that internal types have and the API's have not."""
INTERNAL: Final = ("core", "storage")
"""Groups of which refusals show objects with the names of Go's internal types."""


class Tree:
    """A source tree of Kubernetes."""

    def __init__(self, root: Path, version: str) -> None:
        self.root = root
        self.version = version
        self.minor = ".".join(version.split(".")[:2])
        self.used: dict[str, str] = {}
        if f'DefaultKubeBinaryVersion = "{self.minor}"' not in self.text(VERSION):
            raise GoTypeError(f"{root / VERSION} is not of Kubernetes {self.minor}")

    def text(self, path: Path) -> str:
        """A file of the tree, which the table is then made of, too."""
        self.used[str(path)] = (self.root / path).read_text(encoding="utf-8")
        return self.used[str(path)]

    @cached_property
    def schemas(self) -> dict[str, Any]:
        """The OpenAPI schemas of all types, by name."""
        found: dict[str, Any] = {}
        for path in sorted((self.root / "api/openapi-spec/v3").glob("api*_openapi.json")):
            document = json.loads(self.text(path.relative_to(self.root)))
            for name, schema in document.get("components", {}).get("schemas", {}).items():
                found.setdefault(name, schema)
        return found

    def package(self, name: str) -> GoPackage:
        """The Go types of a group and version (`core.v1`)."""
        files = ("types.go", "watch.go") if name == META else ("types.go",)
        return read_package(name, "".join(self.text(self.folder(name) / file) for file in files))

    def folder(self, name: str) -> Path:
        group, _, version = name.partition(".")
        base = STAGING / ("apimachinery/pkg/apis" if name == META else "api")
        return base / group / version

    def digest(self) -> str:
        """Of all that was read."""
        files = sorted(self.used.items())
        return digest_of("".join(f"{path} {digest_of(text)}\n" for path, text in files))


def table(tree: Tree) -> str:
    """The text of the table."""
    packages = {name: tree.package(name) for name in SERVED}
    sources = GoSources(packages)
    lines = [line for name in packages for line in package_lines(tree, sources, name)]
    for group in INTERNAL:
        lines += internal_lines(tree, group, packages[f"{group}.v1"])
    body = "\n".join(lines) + "\n"
    return (
        f"# Kubernetes {tree.version}: the types of its API, for kubeobjects/schema/messages.py\n"
        f"# Made by tools/api_schema.py of sources with the digest {tree.digest()}\n"
        f"{OWN_DIGEST}{digest_of(body)}\n{body}"
    )


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def untouched(text: str) -> bool:
    """Whether a table is as it was made: its digest is that of what follows it."""
    head, _, rest = text.partition(OWN_DIGEST)
    kept, _, body = rest.partition("\n")
    return head.count("\n") == 2 and kept == digest_of(body)


def package_lines(tree: Tree, sources: GoSources, of: str) -> Iterator[str]:
    """The messages of a group and version, sorted by name."""
    package, meta = sources.packages[of], sources.packages[META]
    messages = proto_messages(tree.text(tree.folder(package.name) / "generated.proto"))
    yield f"[{package.name}]"
    for name in sorted(messages):
        if (of, name) in SCALARS:
            continue
        schema = tree.schemas.get(openapi_name(package.name, name), {})
        if name in package.lists:
            yield name
            yield f"  1 items []{package.lists[name]} itself"
            continue
        owner = meta if package.named.get(name) == f"metav1.{name}" else package
        if name not in owner.structs and package is meta:
            continue  # written by a function of its own: a duration, a time
        if name not in owner.structs:
            raise GoTypeError(f"{package.name}.{name} is in the .proto file, but no Go struct")
        yield " ".join((name, *type_words(owner.structs[name], schema)))
        fields = [field for field in owner.structs[name] if field.number]
        differ = {(field.number, field.proto_name) for field in fields} ^ messages[name]
        if differ:
            raise GoTypeError(f"{package.name}.{name} in Go and .proto: {sorted(differ)}")
        for field in sorted(fields, key=lambda field: field.number):
            kind = sources.resolved(owner, field.type)
            yield f"  {field_line(of, field, kind, schema)}"


def openapi_name(package: str, name: str) -> str:
    """The name of a type in the OpenAPI documents."""
    if package == META:
        return f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"
    return f"io.k8s.api.{package}.{name}"


def type_words(fields: Iterable[GoField], schema: Mapping[str, Any]) -> Iterator[str]:
    """What is said of a whole type: `typed`, `atomic`."""
    if any(field.type == "metav1.TypeMeta" or field.go_name == "TypeMeta" for field in fields):
        yield "typed"
    if schema.get("x-kubernetes-map-type"):
        yield schema["x-kubernetes-map-type"]


def field_line(of: str, field: GoField, kind: Resolved, schema: Mapping[str, Any]) -> str:
    """The line of a field of the package `of`, as kubeobjects/schema/messages.py explains it."""
    qualified = kind.name if kind.package in ("", of) else f"{kind.package}.{kind.name}"
    name = SCALARS.get((kind.package, kind.name), qualified)
    words = [str(field.number), field.name, f"{kind.shape}{name}"]
    words += [word for word in ("always", "omitzero", "inline") if word in field.written]
    if kind.go_type or kind.go_key:
        words.append(f"{kind.go_key}:{kind.go_type}" if kind.go_key else kind.go_type)
    words += topology_words(schema.get("properties", {}).get(field.name, {}), "always" in words)
    words += ["required"] if field.name in schema.get("required", ()) else []
    words += merge_words(field)
    if field.go_name.lower() != field.name.lower():
        words.append(f"go={field.go_name}")
    return " ".join(words)


def topology_words(schema: Mapping[str, Any], always: bool) -> Iterator[str]:
    """How parts of the field are owned: `list=set`, `list=map:name,protocol`, `map=atomic`; and its
    default: `default="TCP"`, unless it is always there and the default says no more."""
    lists = schema.get("x-kubernetes-list-type")
    if lists and lists != "atomic":
        keys = ",".join(schema.get("x-kubernetes-list-map-keys", ()))
        yield f"list={lists}" + (f":{keys}" if keys else "")
    if schema.get("x-kubernetes-map-type"):
        yield f"map={schema['x-kubernetes-map-type']}"
    default = schema.get("default", {})
    if default != {} and not (always and default in ("", 0, False)):
        yield f"default={json.dumps(default)}"


def merge_words(field: GoField) -> Iterator[str]:
    """How a strategic merge patch merges the list: `merge=name`, `merge=` for plain values."""
    strategy = field.tags.get("patchStrategy", "").split(",")
    if "merge" in strategy:
        yield f"merge={field.tags.get('patchMergeKey', '')}"


def internal_lines(tree: Tree, group: str, package: GoPackage) -> Iterator[str]:
    """The fields of internal types in their order, where the API has a type of that name."""
    path = Path("pkg/apis") / group / "types.go"
    internal = read_package(group, tree.text(path))
    yield f"[internal {group}]"
    for name in sorted(internal.structs.keys() & package.structs.keys()):
        if not any(field.go_name == "TypeMeta" for field in internal.structs[name]):
            outer = {field.go_name for field in package.structs[name]}
            yield " ".join((name, *internal_fields(internal, name, outer)))


def internal_fields(internal: GoPackage, name: str, outer: Collection[str]) -> Iterator[str]:
    """The names of the fields of a struct; those of structs in it stand among them. Where the API's
    type has them in no place (`outer`: the names of its fields), with what they are then."""
    for field in internal.structs[name]:
        if field.embedded and field.type in internal.structs:
            yield from internal_fields(internal, field.type, ())
        elif outer and field.go_name not in outer and field.type in ZEROS:
            yield f"{field.go_name}={ZEROS[field.type]}"
        else:
            yield field.go_name


def proto_messages(text: str) -> dict[str, set[tuple[int, str]]]:
    """The fields, number and name, of each message of a .proto file."""
    messages: dict[str, set[tuple[int, str]]] = {}
    fields: set[tuple[int, str]] = set()
    for line in text.splitlines():
        words = line.partition("//")[0].replace(";", "").split()
        if words[:1] == ["message"]:
            fields = messages[words[1]] = set()
        elif len(words) >= 4 and words[-2] == "=" and words[-1].isdigit():
            fields.add((int(words[-1]), words[-3]))
    return messages


def check_digests() -> int:
    """1, and a line for each, if tables are not as they were made."""
    tables = sorted(TABLES.glob("kubernetes-*.txt"))
    touched = [table.name for table in tables if not untouched(table.read_text())]
    for name in touched:
        print(f"{name} was changed by hand: make it again with tools/api_schema.py")
    return 1 if touched or not tables else 0


def main(words: list[str]) -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sources", type=Path, nargs="?", help="a source tree of Kubernetes")
    parser.add_argument("--kubernetes", metavar="VERSION", help="that of the sources, as 1.36.2")
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    options = parser.parse_args(words)
    if options.sources is None and options.check:
        return check_digests()
    if options.sources is None or not options.kubernetes:
        parser.error("wanted SOURCES and --kubernetes VERSION, or --check alone")
    tree = Tree(options.sources, options.kubernetes)
    text = table(tree)
    file = TABLES / f"kubernetes-{tree.minor}.txt"
    if options.check:
        same = file.exists() and file.read_text() == text
        print(f"{file.name}: {'as the sources say' if same else 'the sources say otherwise'}")
        return 0 if same else 1
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    print(f"{file.name}: {text.count(chr(10))} lines of Kubernetes {tree.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
