"""Write the Python package `criapi` from the .proto files, or prove that it is current.

    python protos/generate.py           writes protos/criapi/
    python protos/generate.py --check   generates into a temporary directory and compares

Needs grpcio-tools 1.62.3: its output imports with every protobuf from 4.25 and every grpcio from
1.62 on. A newer generator writes code that refuses older run-times. Files in the descriptor pool
are named `criapi/<version>/api.proto`, so that they cannot meet another package's `api.proto`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PROTOS = Path(__file__).resolve().parent
PACKAGES = {
    "v1": "cri/v1",
    "v1alpha2": "cri/v1alpha2",
    "health": "health",
    "deviceplugin": "deviceplugin/v1beta1",
    "podresources": "podresources/v1",
}
"""Packages below `criapi`, and where their api.proto lies."""
GENERATOR = "1.62.3"


class GenerateError(Exception):
    """What went wrong and what to do about it."""


def generate(target: Path) -> list[Path]:
    """Write the generated files below `target`/criapi; their paths relative to `target`."""
    _check_generator()
    from grpc_tools import protoc

    for package, source in PACKAGES.items():
        out = target / "criapi" / package
        out.mkdir(parents=True, exist_ok=True)
        status = protoc.main(
            [
                "protoc",
                f"-Icriapi/{package}={PROTOS / source}",
                f"--python_out={target}",
                f"--pyi_out={target}",
                f"--grpc_python_out={target}",
                f"criapi/{package}/api.proto",
            ]
        )
        if status != 0:
            raise GenerateError(f"protoc failed on protos/{source}/api.proto (see above)")
        (out / "api_pb2_grpc.pyi").write_text(_service_stubs(package), encoding="utf-8")
    return sorted(path.relative_to(target) for path in target.glob("criapi/*/api_pb2*.py*"))


def _check_generator() -> None:
    try:
        found = version("grpcio-tools")
    except PackageNotFoundError:
        found = "none"
    if found != GENERATOR:
        raise GenerateError(
            f"wanted grpcio-tools {GENERATOR}, found {found}; run this with: tox -e protos"
        )


def _service_stubs(package: str) -> str:
    """Types for api_pb2_grpc, which the generator leaves out: requests typed, channels not."""
    lines = [
        "from typing import Any",
        "",
        f"from criapi.{package} import api_pb2",
    ]
    for service in _parsed(package).service:
        methods = list(service.method)
        lines += [
            "",
            f"class {service.name}Stub:",
            "    def __init__(self, channel: Any) -> None: ...",
        ]
        lines += [f"    {method.name}: Any" for method in methods]
        lines += ["", f"class {service.name}Servicer:"]
        for method in methods:
            request = method.input_type.rpartition(".")[2]
            lines.append(
                f"    def {method.name}(self, request: api_pb2.{request}, context: Any) -> Any: ..."
            )
        lines += [
            "",
            f"def add_{service.name}Servicer_to_server(servicer: Any, server: Any) -> None: ...",
        ]
    return "\n".join(lines) + "\n"


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
    checked_in = {path.relative_to(PROTOS) for path in PROTOS.glob("criapi/*/api_pb2*.py*")}
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
            print(f"wrote {len(written)} files below {PROTOS / 'criapi'}")
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
        print("protos/criapi is current")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
