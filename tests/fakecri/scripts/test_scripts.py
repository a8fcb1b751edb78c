"""Script files: what they mean, and that every mistake is one line with its place."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from fakecri import FakeCRI, RegistryImage
from fakecri.behaviors.matching import Subject
from fakecri.scripts.script import ScriptError, apply_script, load_script
from fakecri.words.behaviors import Reply, exits, oom_at, prints, replies, uses
from fakecri.words.curves import ramp

GOOD = """\
images: [localhost/busybox:1, localhost/app:2]
behaviors:
  - container: web
    attempt: 0
    times: 2
    prints: [{text: hello}, {text: "7", at_s: 1.5}]
    exits: {code: 1, after_s: 2}
  - pod: no        # text, not false
    uses: {memory: [[0, 100], [5, 200]], pids: 3, cache: {from: 0, to: 9, over_s: 3, steps: 3}}
    oom_at: {at_s: 60}
    replies: {command: [cat, 5], answers: [{exit_code: 1}, {stdout: ok}]}
faults:
  - on: StartContainer
    container: web
    nth: 2
    fails: {code: unavailable, message: boom, times: 1}
  - {on: ListContainers, delays: {delay_s: 2}}
  - {on: StopContainer, hangs: {}}
"""


def script_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(dedent(text))
    return path


def test_a_script_means_what_the_python_words_mean(tmp_path: Path) -> None:
    script = load_script(script_file(tmp_path, GOOD))
    assert script.images == ("localhost/busybox:1", "localhost/app:2")
    web, no = script.behaviors
    assert web.behaviors == (exits(1, after_s=2), prints("hello"), prints("7", at_s=1.5))
    assert web.selectors == {"container": "web", "attempt": 0, "times": 2}
    assert no.selectors == {"pod": "no"}
    assert no.behaviors == (
        replies(["cat", "5"], answers=(Reply(exit_code=1), Reply(stdout="ok"))),
        uses(memory_bytes=[(0, 100), (5, 200)], pids=3, cache_bytes=ramp(0, 9, 3, steps=3)),
        oom_at(60),
    )
    assert [(one.on, one.action, one.arguments, one.selectors) for one in script.faults] == [
        (
            "StartContainer",
            "fails",
            {"times": 1, "code": "UNAVAILABLE", "message": "boom"},
            {"container": "web", "nth": 2},
        ),
        ("ListContainers", "delays", {"delay_s": 2.0}, {}),
        ("StopContainer", "hangs", {}, {}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "script.yaml: it is empty, wanted a mapping"),
        ("images: [", "script.yaml:1:10: no valid YAML"),
        ("a: 1\n---\nb: 2", "script.yaml:2:1: no valid YAML"),
        ("image: []", ":1:1: unknown key 'image', wanted one of: runtime, node, images"),
        ("images: []\nimages: []", ":2:1: key 'images' is given twice"),
        ("images: busybox", ":1:9: images: wanted a list of texts, got the text 'busybox'"),
        (
            "images:\n- [x]",
            ":2:3: images[0]: wanted an image, such as localhost/busybox:1, got a list",
        ),
        (
            "images:\n-",
            ":2:2: images[0]: wanted an image, such as localhost/busybox:1, got nothing",
        ),
        ("behaviors:\n- {pod: a}", ":2:3: behaviors[0]: wanted at least one of"),
        ("behaviors:\n- exit: {}", ":2:3: behaviors[0]: unknown key 'exit', wanted one of: exits,"),
        (
            "behaviors:\n- exits:\n    code: one",
            ":3:11: behaviors[0].exits.code: wanted a whole number from 0 to 255, "
            "got the text 'one'",
        ),
        (
            "behaviors:\n- exits:\n    codes: 1",
            ":3:5: behaviors[0].exits: unknown key 'codes', wanted one of: code, after_s",
        ),
        (
            "behaviors:\n- exits: 1",
            ":2:10: behaviors[0].exits: wanted a mapping or a list of mappings, got the number 1",
        ),
        (
            "behaviors:\n- {exits: {}, attempt: x}",
            "attempt: wanted a whole number, got the text 'x'",
        ),
        (
            "faults:\n- hangs: {}",
            ":2:3: faults[0]: key 'on' is missing, wanted the name of a CRI method",
        ),
        ("faults:\n- {on: Start, hangs: {}}", "faults[0].on: CRI v1 has no method 'Start'"),
        ("faults:\n- on: Version", "goes_silent; got none"),
        (
            "faults:\n- {on: Version, hangs: {}, fails: {}}",
            "goes_silent; got fails, hangs",
        ),
        ("faults:\n- {on: Version, fails: {code: OOPS}}", "'OOPS' is no gRPC status code"),
        ("faults:\n- {on: Version, delays: {}}", "key 'delay_s' is missing, wanted seconds"),
        (
            "faults:\n- {on: Version, delays: {delay_s: soon}}",
            "delay_s: wanted seconds: 2, 1.5s, 500ms, 5m or 1h; got 'soon'",
        ),
        (
            "behaviors:\n- exits: {}\n  times: 0",
            ":3:10: behaviors[0].times: wanted a whole number from 1",
        ),
        ("behaviors:\n- {exits: {}, first_attempts: -1}", "whole number from 1, got the number -1"),
        ("faults:\n- {on: Version, nth: 0, hangs: {}}", "nth: wanted a whole number from 1"),
        (
            "faults:\n- {on: Version, hangs: {times: 0}}",
            "hangs.times: wanted a whole number from 1",
        ),
        ("registry: [a]", ":1:11: registry: wanted a mapping of texts to mappings, got a list"),
        ("registry:\n  a:1: {pulls_s: 1}", ":2:9: registry.a:1: unknown key 'pulls_s', wanted one"),
        ("registry:\n  a:1: {credentials: [me]}", "wanted [user, password], got 1 items"),
        ("registry:\n  a:1: {stop_signal: HUPP}", ":2:8: registry.a:1: 'HUPP' is no signal"),
        ("registry:\n  UPPER:1: {}", ":2:3: registry.UPPER:1: 'UPPER:1': invalid reference format"),
        ("registry:\n  a:1: {}\n  a:1: {}", ":3:3: registry: key 'a:1' is given twice"),
        ("forwards:\n- {port: 80}", ":2:3: forwards[0]: key 'to' is missing"),
        (
            "forwards:\n- {port: 70000, to: 1}",
            "forwards[0].port: wanted a whole number from 0 to 65535, got the number 70000",
        ),
        ("forwards:\n- {port: 80, to: nowhere}", "forwards[0].to: wanted a port, 'host:port'"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScriptError) as failure:
        load_script(script_file(tmp_path, text))
    assert message in str(failure.value)
    assert str(failure.value).startswith(str(tmp_path / "script.yaml"))
    assert "\n" not in str(failure.value)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"cannot read .*none.yaml: no such file or directory"):
        load_script(tmp_path / "none.yaml")
    (tmp_path / "script.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScriptError, match="no UTF-8 text"):
        load_script(tmp_path / "script.yaml")


def test_a_proxy_takes_only_faults(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r":2:9: images: a proxy takes only faults"):
        load_script(script_file(tmp_path, "faults: []\nimages: [x]"), faults_only=True)


async def test_a_registry_of_a_script_is_what_pulls_meet(tmp_path: Path) -> None:
    text = """\
    registry:
      slow:1: {pull_s: 20, size_bytes: 7}
      registry.example/gone/*: {missing: true}
      private:1: {credentials: [me, secret]}
    """
    fake = FakeCRI()
    apply_script(load_script(script_file(tmp_path, text)), fake)
    look_up = fake.images.registry
    assert look_up("docker.io/library/slow:1") == RegistryImage(pull_s=20, size_bytes=7)
    assert look_up("registry.example/gone/app:3") is None
    assert look_up("docker.io/library/other:1") == RegistryImage()
    private = look_up("docker.io/library/private:1")
    assert private is not None
    assert private.credentials == ("me", "secret")


def test_starts_may_be_the_first_ones_and_ports_lead_somewhere(tmp_path: Path) -> None:
    text = """\
    behaviors:
      - {container: web, first_attempts: 2, exits: {code: 1}}
    forwards:
      - {pod: shop, port: 80, to: 8080}
      - {port: 0, to: "[::1]:99"}
    """
    script = load_script(script_file(tmp_path, text))
    assert script.behaviors[0].selectors == {"container": "web", "first_attempts": 2}
    fake = FakeCRI()
    apply_script(script, fake)
    shop, other = Subject(pod="shop"), Subject(pod="other")
    assert fake.streaming.port_of(shop, 80) == "[::1]:99"  # the newer rule
    assert [rule.what for rule in fake.rules()] == [
        "containers (container='web') in their first 2 attempts: exits(code=1)",
        "port 80 of pods (pod='shop')",
        "port 0 of pods (anything)",
    ]
    fake.rules()[-1].remove()
    assert (fake.streaming.port_of(shop, 80), fake.streaming.port_of(other, 80)) == (
        "127.0.0.1:8080",
        None,
    )
