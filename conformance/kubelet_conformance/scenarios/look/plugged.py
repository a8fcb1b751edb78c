"""Looks at what is plugged into the kubelet, and at answers of its ports."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from fakecri.recording.plain import plain
from kubelet_conformance.harness.kubelets.base import HttpAnswer, KubeletDied
from kubelet_conformance.scenarios.look.node import path_of
from kubelet_conformance.scenarios.look.view import Look, View, count_fits, listed
from kubelet_conformance.scenarios.shape.plugged import AnswerShown, Asking, DeviceCalls, LoginRuns
from kubelet_conformance.scenarios.shape.ranges import is_in

SHOWN: int = 600


def device_calls(view: View, what: DeviceCalls) -> Look:
    """So many calls to a device plug-in."""
    plugin = view.device_plugins[what.resource]
    since_s = 0.0 if what.since is UNSET else view.mark(what.since).at_s - 1e-9
    calls = [
        call
        for call in plugin.calls
        if call.method == what.method and view.node.since_start_s(call.time_s) >= since_s
    ]
    requests = [plain(call.request) for call in calls]
    fitting = [each for each in requests if what.request is UNSET or is_in(what.request, each)]
    words = listed([str(each) for each in requests])
    return Look(count_fits(what.count, len(fitting)), f"{len(fitting)} of {words}")


def login_runs(view: View, what: LoginRuns) -> Look:
    """So many runs of a credential plug-in."""
    before = 0 if what.since is UNSET else view.mark(what.since).logins.get(what.name, 0)
    images = [str(run.request.get("image", "")) for run in view.node.logins.asked(what.name)]
    new = images[before:]
    fitting = [image for image in new if what.image is UNSET or what.image.fits(image)]
    return Look(count_fits(what.count, len(fitting)), f"{len(fitting)} of {listed(new)}")


async def ask(view: View, what: Asking) -> HttpAnswer:
    """Send a request to the kubelet. Raises KubeletDied, and LookupError while the UID in the path
    is not known."""
    path = path_of(view, what)
    if path is None:
        raise LookupError(f"the UID of pod {what.pod} is not known")
    return await view.node.kubelet.http(
        path=path,
        method=what.method,
        port=what.port,
        headers={} if what.headers is UNSET else what.headers,
        for_s=None if what.leaves is UNSET else what.leaves,
    )


async def answer(view: View, what: AnswerShown) -> Look:
    """An answer of the kubelet."""
    try:
        if what.ask is not UNSET:
            got = await ask(view, what.ask)
        else:
            task = view.asked[str(what.to)]
            if not task.done():
                return Look(False, "the answer has not ended")
            got = task.result()
    except (KubeletDied, LookupError) as error:
        return Look(False, str(error))
    fits = [
        what.status is UNSET or what.status.holds(got.status),
        what.text is UNSET or what.text.fits(got.text),
        what.headers is UNSET or _headers_fit(what.headers, got),
        what.has is UNSET or _body_has(what.has, got),
    ]
    headers = "" if what.headers is UNSET else f" {dict(got.headers)}"
    return Look(all(fits), f"{got.status}{headers} {got.text[:SHOWN]!r}")


def _headers_fit(wanted: dict[str, Any], got: HttpAnswer) -> bool:
    return all(words.fits(got.headers.get(name.lower(), "")) for name, words in wanted.items())


def _body_has(wanted: Any, got: HttpAnswer) -> bool:
    try:
        return is_in(wanted, got.json())
    except ValueError:
        return False
