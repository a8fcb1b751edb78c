"""`fakekubeapi serve`: the fake API server as a process of its own."""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fakekubeapi.kubelets.flags import add_flags, options_of
from kubeobjects.schema.messages import DEFAULT_MINOR
from simclock.distribution import add_version

if TYPE_CHECKING:
    import asyncio

    from fakekubeapi.access.certificates import CertificateAuthority
    from fakekubeapi.api import FakeApi
    from fakekubeapi.kubelets.options import KubeletOptions

DEFAULT_LISTEN: Final = "127.0.0.1:8001"
PLUGINS: Final = ("ServiceAccount",)
"""The admission plug-ins that can be switched on."""


class UsageError(Exception):
    """A mistake in the command line or its surroundings; the text says what was wanted, what was
    there and what to do."""


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[IPV6]:PORT`; port 0 means any free one. Raises: UsageError
    for anything else.

    >>> parse_listen("127.0.0.1:8001")
    ('127.0.0.1', 8001)
    """
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"--listen: wanted HOST:PORT with a port from 0 to 65535, got {text!r}; "
            f"for example {DEFAULT_LISTEN}"
        )
    return host.strip("[]"), int(port)


def parse_plugins(text: str) -> frozenset[str]:
    """The names of admission plug-ins in a list with commas. Raises: UsageError for one that is not
    here.

    >>> sorted(parse_plugins("ServiceAccount"))
    ['ServiceAccount']
    """
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    if unknown := sorted(names - set(PLUGINS)):
        raise UsageError(
            f'--enable-admission-plugins: plugin "{unknown[0]}" is unknown; '
            f"wanted some of {', '.join(PLUGINS)}"
        )
    return names


def kubeconfig(url: str, root_pem: str = "") -> str:
    """The text of a kubeconfig for clients of the server at `url`. It needs no credentials; over
    TLS there is a token all the same, as kubectl asks for a name and a password where it has
    nothing to show. `root_pem`: the certificate of the authority behind its TLS."""
    trusted = base64.b64encode(root_pem.encode()).decode()
    user = "{token: of-nobody}" if root_pem else "{}"
    authority = f"\n    certificate-authority-data: {trusted}" if root_pem else ""
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: fakekubeapi
  cluster:
    server: {url}{authority}
users:
- name: fakekubeapi
  user: {user}
contexts:
- name: fakekubeapi
  context:
    cluster: fakekubeapi
    user: fakekubeapi
current-context: fakekubeapi
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fakekubeapi", description="A fake kube-apiserver.")
    add_version(parser)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve until SIGTERM or SIGINT")
    _add_access(serve)
    _add_objects(serve)
    add_flags(serve)
    serve.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="tell of each request, with the status of its answer and why it was refused",
    )
    serve.add_argument(
        "--clock-page",
        metavar="FILE",
        help="live in the time of this clock page, with the programs and fakes that name it, too "
        "(python -m simclock.timewarp --clock-page FILE); it is made if there is none",
    )
    return parser


def _add_access(serve: argparse.ArgumentParser) -> None:
    """Where it listens, and how clients get there."""
    serve.add_argument(
        "--listen",
        default=DEFAULT_LISTEN,
        metavar="HOST:PORT",
        help="no authentication (default: %(default)s; port 0: a free one)",
    )
    serve.add_argument(
        "--tls",
        action="store_true",
        help="speak TLS, with a certificate for HOST and localhost of an authority made for it "
        "(kept in the directory of --data), which --kubeconfig-out holds; client certificates of "
        "that authority name users",
    )
    serve.add_argument(
        "--approve-certificates",
        action="store_true",
        help="approve and sign the certificate requests of kubelets, with the same authority",
    )
    serve.add_argument(
        "--kubeconfig-out",
        type=Path,
        metavar="FILE",
        help="write a kubeconfig for kubelets and kubectl here once the server listens",
    )


def _add_objects(serve: argparse.ArgumentParser) -> None:
    """Where objects are kept, and what new ones get."""
    serve.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="keep all objects in this directory, and go on with those that are there "
        "(default: in memory alone)",
    )
    serve.add_argument(
        "--enable-admission-plugins",
        default="",
        metavar="NAMES",
        help="ServiceAccount: new pods get a service account and the volume with its token, new "
        "namespaces kube-root-ca.crt (default: none; a kube-apiserver has it without being asked)",
    )
    serve.add_argument(
        "--kubernetes",
        default=DEFAULT_MINOR,
        metavar="MINOR",
        help="serve the API types of that minor (default: %(default)s)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; `argv` None: the arguments of the process. Returns the exit status: 0 after
    a signal, 2 for a mistake in the command line or its surroundings."""
    options = _parser().parse_args(argv)
    import asyncio  # here, not above: `fakekubeapi --help` shall not wait for it
    import logging

    if options.verbose:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        host, port = parse_listen(options.listen)
        with asyncio.Runner(loop_factory=_loop_factory(options.clock_page)) as runner:
            runner.run(_serve(host, port, options))
    except UsageError as error:
        print(f"fakekubeapi: {error}", file=sys.stderr)
        return 2
    return 0


def _loop_factory(clock_page: str | None) -> Callable[[], asyncio.AbstractEventLoop]:
    """Loops in real time, or in the time of that clock page. Raises: UsageError."""
    import asyncio

    if clock_page is None:
        return asyncio.new_event_loop
    from simclock.timewarp import CannotWarp, loops_at

    try:
        return loops_at(clock_page)
    except CannotWarp as problem:
        raise UsageError(f"--clock-page: {problem}") from None


async def _serve(host: str, port: int, options: argparse.Namespace) -> None:
    """Serve until SIGTERM or SIGINT. Raises: UsageError."""
    # Here, not above: `fakekubeapi --help` shall not wait for the server's modules.
    from fakekubeapi.api import FakeApi
    from fakekubeapi.options import ServerOptions
    from fakekubeapi.storage.journal import DataError
    from fakekubeapi.storage.watch import BOOKMARK_EVERY_S
    from simclock import Ids, Rng

    plugins = parse_plugins(options.enable_admission_plugins)
    try:
        api = FakeApi(
            ids=Ids(Rng.from_system()),
            options=ServerOptions(
                kubernetes=options.kubernetes,
                field_managers=True,
                data=options.data,
                bookmark_every_s=BOOKMARK_EVERY_S,
                service_account_admission="ServiceAccount" in plugins,
            ),
        )
    except DataError as error:
        raise UsageError(f"--data: {error}") from None
    except LookupError as error:
        raise UsageError(f"--kubernetes: {error}") from None
    try:
        authority = api.authority = _authority(options)
        api.kubelets = _kubelets(options, authority)
        if options.approve_certificates:
            api.signing.approve()
        await _serve_api(
            api, host, port, options=options, authority=authority if options.tls else None
        )
    finally:
        api.close()


async def _serve_api(
    api: FakeApi,
    host: str,
    port: int,
    *,
    options: argparse.Namespace,
    authority: CertificateAuthority | None,
) -> None:
    """Serve `api`, over TLS if there is an authority; write the kubeconfig, if any, once the port
    is open."""
    import asyncio
    import signal

    from fakekubeapi.access.serving import server_context
    from fakekubeapi.http import serve
    from simclock import RealClock

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    tls = server_context(authority, [host], RealClock().now()) if authority else None
    try:
        server = await serve(api, host, port, tls=tls)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"cannot listen on {host}:{port}: {reason}\n"
            "  choose another address:  fakekubeapi serve --listen 127.0.0.1:0"
        ) from None
    async with server:
        if options.kubeconfig_out is not None:
            root_pem = authority.root_pem if authority else ""
            _write_kubeconfig(options.kubeconfig_out, server.url, root_pem)
        print(f"fakekubeapi: serving on {server.url}", flush=True)
        await stop.wait()


def _authority(options: argparse.Namespace) -> CertificateAuthority | None:
    """What signs certificates; None: neither flag wants it. Raises: UsageError."""
    if not options.tls and not options.approve_certificates:
        return None
    from fakekubeapi.access.serving import AuthorityError, authority_in
    from simclock import RealClock

    try:
        return authority_in(options.data, RealClock().now())
    except AuthorityError as error:
        raise UsageError(f"--data: {error}") from None
    except RuntimeError as error:
        raise UsageError(f"--tls, --approve-certificates: {error}") from None


def _kubelets(
    options: argparse.Namespace, authority: CertificateAuthority | None
) -> KubeletOptions:
    """How to reach kubelets, as a client of that authority unless flags say it. Raises:
    UsageError."""
    from fakekubeapi.access.serving import kubelet_client_pem
    from fakekubeapi.kubelets.options import CredentialsError
    from simclock import RealClock

    try:
        pem = kubelet_client_pem(authority, RealClock().now()) if authority else ""
        return options_of(options, pem)
    except CredentialsError as error:
        raise UsageError(str(error)) from None


def _write_kubeconfig(path: Path, url: str, root_pem: str) -> None:
    try:
        path.write_text(kubeconfig(url, root_pem), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--kubeconfig-out: cannot write {path}: {error.strerror}; "
            "name a file in a directory that exists and is writable"
        ) from None


if __name__ == "__main__":
    raise SystemExit(main())
