"""Write the Python package `kubecri` from the .proto files, or prove that it is current.

    python protos/generate.py           writes protos/kubecri/
    python protos/generate.py --check   generates into a temporary directory and compares

Needs grpcio-tools 1.62.3: its output imports with every protobuf from 4.25 and every grpcio from
1.62 on. A newer generator writes code that refuses older run-times. The messages are put into a
descriptor pool of kubecri's own, so that a program may import other stubs of the same APIs, too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import typed

PROTOS = Path(__file__).resolve().parent
PACKAGES = {
    "v1": "cri/v1",
    "v1alpha2": "cri/v1alpha2",
    "health": "health",
    "deviceplugin": "deviceplugin/v1beta1",
    "podresources": "podresources/v1",
    "podresources_v1alpha1": "podresources/v1alpha1",
    "pluginregistration": "pluginregistration/v1",
    "csi": "csi/v1",
}
"""Packages below `kubecri`, and where their api.proto lies."""
GENERATED = ("api_pb2*.py*", "typed_calls.py")
"""The files in each of them that are written here."""
GENERATOR = "1.62.3"
OWN_POOL = {
    "from google.protobuf import descriptor_pool as _descriptor_pool\n": "",
    "from google.protobuf import symbol_database as _symbol_database\n": "",
    "_sym_db = _symbol_database.Default()\n": "",
    "# @@protoc_insertion_point(imports)": "from kubecri import own_pool as _own_pool",
    "_descriptor_pool.Default()": "_own_pool.POOL",
    "_builder.BuildTopDescriptorsAndMessages": "_own_pool.build",
}
"""What is another in protoc's output, so that the messages are in kubecri's own pool."""


class GenerateError(Exception):
    """What went wrong and what to do about it."""


def generate(target: Path) -> list[Path]:
    """Write the generated files below `target`/kubecri; their paths relative to `target`."""
    _check_generator()
    from grpc_tools import protoc

    for package, source in PACKAGES.items():
        out = target / "kubecri" / package
        out.mkdir(parents=True, exist_ok=True)
        status = protoc.main(
            [
                "protoc",
                f"-Ikubecri/{package}={PROTOS / source}",
                f"--python_out={target}",
                f"--pyi_out={target}",
                f"--grpc_python_out={target}",
                f"kubecri/{package}/api.proto",
            ]
        )
        if status != 0:
            raise GenerateError(f"protoc failed on protos/{source}/api.proto (see above)")
        _rewrite(out, package, _parsed(package))
    return sorted(path.relative_to(target) for path in _generated(target))


def _generated(target: Path) -> list[Path]:
    return [path for kind in GENERATED for path in target.glob(f"kubecri/*/{kind}")]


def _rewrite(out: Path, package: str, file: Any) -> None:
    """Give a package its own descriptor pool, and the types that protoc leaves out."""
    if file.dependency:
        raise GenerateError(
            f"protos/{PACKAGES[package]}/api.proto imports {', '.join(file.dependency)}: the "
            "files of kubecri's descriptor pool (kubecri/own_pool.py) must not import others yet"
        )
    messages, services = out / "api_pb2.py", out / "api_pb2_grpc.py"
    text = messages.read_text(encoding="utf-8")
    for old, new in OWN_POOL.items():
        if text.count(old) != 1:
            raise GenerateError(f"the generator's output has not one {old!r}: look at OWN_POOL")
        text = text.replace(old, new)
    messages.write_text(text, encoding="utf-8")
    with services.open("a", encoding="utf-8") as end:
        end.write(typed.async_names(file))
    stubs = typed.stub_module(package, file)
    services.with_suffix(".pyi").write_text(stubs, encoding="utf-8")
    if package == "v1":
        calls = typed.calls_module(f"kubecri.{package}", file)
        (out / "typed_calls.py").write_text(calls, encoding="utf-8")


def _check_generator() -> None:
    try:
        found = version("grpcio-tools")
    except PackageNotFoundError:
        found = "none"
    if found != GENERATOR:
        raise GenerateError(
            f"wanted grpcio-tools {GENERATOR}, found {found}; run this with: tox -e protos"
        )


def _parsed(package: str) -> Any:
    """The FileDescriptorProto of a package's .proto file."""
    from google.protobuf import descriptor_pb2
    from grpc_tools import protoc

    with tempfile.NamedTemporaryFile() as out:
        source = PROTOS / PACKAGES[package]
        protoc.main(["protoc", f"-I{source}", f"--descriptor_set_out={out.name}", "api.proto"])
        return descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes()).file[0]


def differences() -> list[str]:
    """One line per checked-in file that is missing, stale or too much."""
    with tempfile.TemporaryDirectory() as directory:
        fresh = {path: (Path(directory) / path).read_bytes() for path in generate(Path(directory))}
    checked_in = {path.relative_to(PROTOS) for path in _generated(PROTOS)}
    found = []
    for path in sorted(fresh.keys() | checked_in):
        if path not in fresh:
            found.append(f"protos/{path}: nothing generates it")
        elif path not in checked_in:
            found.append(f"protos/{path}: missing")
        elif (PROTOS / path).read_bytes() != fresh[path]:
            found.append(f"protos/{path}: not what protos/ generates")
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    options = parser.parse_args(argv)
    try:
        if not options.check:
            written = generate(PROTOS)
            print(f"wrote {len(written)} files below {PROTOS / 'kubecri'}")
            return 0
        stale = differences()
    except GenerateError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 2
    for line in stale:
        print(line, file=sys.stderr)
    if stale:
        print("run: python protos/generate.py, and commit the result", file=sys.stderr)
    else:
        print("protos/kubecri is current")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
