"""What a failure shows of the kubelet's log."""

from __future__ import annotations

import pytest

from kubelet_conformance.harness.observing.kubelet_log import (
    GAP,
    LONGEST,
    MOST_ABOUT,
    MOST_LAST,
    kept,
    refused_files,
)

KLOG = "{}1129 18:23:12.311995    7746 file.go:187] {}"
FORMS = {
    "klog": ("I1129 18:23:12.3 7 a.go:1] on", "E1129 18:23:12.3 7 a.go:1] bad web"),
    "json": ('{"ts":1.5,"msg":"on web","v":2}', '{"ts":1.5,"msg":"bad web","err":"no"}'),
    "own program": ("2026-11-29 18:00:00,1 I x: web", "2026-11-29 18:00:00,1 W x: bad web"),
    "own": ("     1.000 s  I x: web", "     1.000 s  E x: bad web"),
}


@pytest.mark.parametrize("form", FORMS)
def test_warnings_and_errors_about_a_pod_come_first(form: str) -> None:
    quiet, loud = FORMS[form]
    other = loud.replace("web", "webhook")
    lines = kept([quiet, loud, other, *[quiet] * 100], ["web"])
    assert lines == (loud, GAP, *[quiet] * MOST_LAST)


def test_what_is_said_again_is_told_once_and_long_lines_are_cut() -> None:
    said = [KLOG.format("E", "no web: " + "x" * 2 * LONGEST) for _ in range(9)]
    said += [KLOG.format("W", f"web {n}") for n in range(100)]
    lines = kept([*said, *["I1129 on"] * MOST_LAST], ["web"])
    assert len(lines) == MOST_ABOUT + 1 + MOST_LAST
    assert lines[0].startswith(said[0][:LONGEST])
    assert lines[1] == said[9]
    assert max(map(len, lines)) == LONGEST + len(f" {GAP}")


def test_without_pods_the_end_is_kept_and_nothing_of_nothing() -> None:
    assert kept(["a", "b"], []) == ("a", "b")
    assert kept([], ["web"]) == ()
    line = KLOG.format("E", "no web")
    assert kept([line], ["web"]) == (line, GAP)


def test_the_last_reason_why_a_file_was_refused_is_told() -> None:
    """As kubelet 1.36 says it: first of the event, then each time it reads the file."""
    why = "couldn't parse as pod(quantities must match '^([+-]?[0-9.]+)$')"
    event = f'"Unable" err="can\'t process config file \\"/c/web.yaml\\": /c/web.yaml: {why}"'
    read = f'"Could not" err="/c/web.yaml: {why}" path="/c/web.yaml"'
    for texts in ([event], [read], [event, read]):
        lines = [KLOG.format("E", text) for text in texts]
        assert refused_files(lines, "/c")["web.yaml"].endswith(why)
    assert refused_files(lines, "/c") == {"web.yaml": why}
    assert refused_files([KLOG.format("I", read)], "/c") == {}
    assert refused_files(lines, "/other") == {}
