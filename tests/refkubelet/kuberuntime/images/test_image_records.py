"""Pull records: which pods may use a present image (BACK-210..212)."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refkubelet.config.schema.image_policies import (
    ALWAYS_VERIFY,
    NEVER_VERIFY,
    NEVER_VERIFY_ALLOWLISTED,
    POLICIES,
    VerificationPolicy,
    is_allowlist_entry,
)
from refkubelet.kuberuntime.images.keyring import Credential, ServiceAccountSource
from refkubelet.kuberuntime.images.pull_record_files import (
    PullRecordFiles,
    record_fields,
    record_of,
)
from refkubelet.kuberuntime.images.pull_records import (
    Access,
    PulledRecord,
    PullVerdict,
    SecretUse,
    access_with,
    accounts_of,
    merged,
    needs_credentials,
    verify,
)
from refkubelet.telemetry.runtime_metrics import ImageMetrics

MINE = SecretUse("ns", "mine", "u1", "h1")
CHANGED = SecretUse("ns", "mine", "u1", "h2")
REMADE = SecretUse("ns", "mine", "u2", "h2")
COPY = SecretUse("other", "copy", "u3", "h1")
COPY_OF_7 = SecretUse("b", "o", "u", "h7")
UNHASHED = SecretUse("ns", "mine", "u1")
IMAGE = "reg.io/app:1"
NAME = "reg.io/app"


def known(*secrets: SecretUse, every_pod: bool = False) -> PulledRecord:
    return PulledRecord("sha256:1", 5, {NAME: Access(every_pod, secrets)})


@pytest.mark.parametrize(
    ("record", "secrets", "verdict"),
    [
        (None, [MINE], PullVerdict(must_pull=True)),
        (PulledRecord("sha256:1"), [MINE], PullVerdict(must_pull=True)),
        (known(every_pod=True), [], PullVerdict(must_pull=False)),
        (known(), [MINE], PullVerdict(must_pull=True)),
        (known(MINE), [], PullVerdict(must_pull=True)),
        (known(MINE), [MINE], PullVerdict(must_pull=False)),
        # the same credential in another secret: learned
        (known(MINE), [COPY], PullVerdict(False, COPY)),
        # the same secret with a new credential: learned
        (known(MINE), [CHANGED], PullVerdict(False, CHANGED)),
        (known(MINE), [REMADE], PullVerdict(must_pull=True)),
        (known(UNHASHED), [SecretUse("other", "copy", "u3")], PullVerdict(must_pull=True)),
        (known(COPY, MINE), [REMADE, MINE], PullVerdict(False, MINE)),
    ],
)
def test_verdicts_BACK_210(
    record: PulledRecord | None, secrets: list[SecretUse], verdict: PullVerdict
) -> None:
    assert verify(record, IMAGE, secrets) == verdict


def test_a_full_record_learns_nothing_more() -> None:
    full = known(*(SecretUse("ns", f"s{i}", f"u{i}", f"h{i}") for i in range(100)))
    assert verify(known(*full.access[NAME].secrets[:99]), IMAGE, [COPY_OF_7]).learned
    assert verify(full, IMAGE, [COPY_OF_7]) == PullVerdict(must_pull=False)
    assert verify(full, IMAGE, [SecretUse("ns", "s7", "u7", "new")]) == PullVerdict(must_pull=True)


def test_a_record_counts_for_its_own_name_only() -> None:
    assert verify(known(every_pod=True), "reg.io/other:1", []).must_pull
    assert not verify(known(every_pod=True), f"{NAME}:2@sha256:{'0' * 64}", []).must_pull


@pytest.mark.parametrize(
    ("policy", "image", "pulled", "verifies"),
    [
        (VerificationPolicy(), IMAGE, True, True),
        (VerificationPolicy(), IMAGE, False, False),
        (VerificationPolicy(NEVER_VERIFY), IMAGE, True, False),
        (VerificationPolicy(ALWAYS_VERIFY), IMAGE, False, True),
        (VerificationPolicy(NEVER_VERIFY_ALLOWLISTED), IMAGE, False, True),
        (VerificationPolicy(NEVER_VERIFY_ALLOWLISTED, (NAME,)), IMAGE, True, False),
        (VerificationPolicy(NEVER_VERIFY_ALLOWLISTED, (NAME,)), "reg.io/apple:1", True, True),
        (VerificationPolicy(NEVER_VERIFY_ALLOWLISTED, ("reg.io/*",)), IMAGE, True, False),
        (VerificationPolicy(NEVER_VERIFY_ALLOWLISTED, ("reg.io/*",)), "reg.io2/a:1", True, True),
    ],
)
def test_policies_BACK_210(
    policy: VerificationPolicy, image: str, pulled: bool, verifies: bool
) -> None:
    assert policy.verifies(image, pulled_by_kubelet=pulled) is verifies


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("reg.io/app", True),
        ("app", True),
        ("reg.io/*", True),
        ("reg.io/team/*", True),
        ("a/*", True),
        ("reg.io/app:1", False),
        ("reg.io/app@sha256:" + "0" * 64, False),
        ("/*", False),
        ("*", False),
        ("reg.*/*", False),
        ("reg.io/a*", False),
        (" reg.io/*", False),
        ("reg.io/* ", False),
        ("reg.io/App", False),
        ("", False),
    ],
)
def test_entries_of_the_allowlist_BACK_210(text: str, good: bool) -> None:
    assert is_allowlist_entry(text) is good


def test_the_names_of_the_policies_BACK_210() -> None:
    assert POLICIES == (
        "NeverVerify",
        "NeverVerifyPreloadedImages",
        "NeverVerifyAllowlistedImages",
        "AlwaysVerify",
    )


def test_a_record_of_unknown_circumstances_BACK_211() -> None:
    record = merged(None, "sha256:1", IMAGE, None, 7)
    assert record == PulledRecord("sha256:1", 7, {})
    assert merged(known(MINE), "sha256:1", IMAGE, None, 7) == known(MINE)


SECRET = st.builds(
    SecretUse,
    st.sampled_from("ab"),
    st.sampled_from("xy"),
    st.sampled_from("12"),
    st.sampled_from(["h1", "h2"]),
)
ACCESS = st.one_of(
    st.just(Access(every_pod=True)),
    SECRET.map(lambda secret: Access(secrets=(secret,))),  # a pull proves one
)


@given(st.lists(st.tuples(st.sampled_from([IMAGE, "reg.io/b:1"]), ACCESS), min_size=1, max_size=6))
def test_whoever_pulled_last_may_use_it(pulls: list[tuple[str, Access]]) -> None:
    """And what every pod may use stays so; a secret has one entry; a repetition changes nothing."""
    record: PulledRecord | None = None
    open_names = set()
    for now_ns, (image, access) in enumerate(pulls):
        record = merged(record, "sha256:1", image, access, now_ns)
        for secret in access.secrets[-1:]:
            assert not verify(record, image, [secret]).must_pull
        if access.every_pod:
            open_names.add(image)
        assert all(not verify(record, name, []).must_pull for name in sorted(open_names))
        assert merged(record, "sha256:1", image, access, 99).access == record.access
        for kept in record.access.values():
            names = [(s.namespace, s.name, s.uid) for s in kept.secrets]
            assert len(names) == len(set(names))


def test_files_come_back_as_they_were_written(tmp_path: Path) -> None:
    files = PullRecordFiles(tmp_path)
    record = PulledRecord(
        "sha256:1", 3_000_000_000, {NAME: Access(secrets=(MINE,)), "b": Access(every_pod=True)}
    )
    files.write(record)
    assert files.read("sha256:1") == record
    assert files.records() == [record]
    assert files.read("sha256:2") is None
    files.delete("sha256:1")
    files.delete("sha256:1")
    assert files.records() == []


def test_the_format_on_disk_BACK_211(tmp_path: Path) -> None:
    files = PullRecordFiles(tmp_path)
    files.write(known(MINE))
    files.write_intent(IMAGE)
    (pulled,) = (tmp_path / "image_manager" / "pulled").iterdir()
    (pulling,) = (tmp_path / "image_manager" / "pulling").iterdir()
    for directory in (pulled.parent, pulling.parent, pulled.parent.parent):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(pulled.stat().st_mode) == 0o600
    assert (pulled.name[:7], len(pulled.name)) == ("sha256-", 71)
    assert json.loads(pulling.read_text()) == {
        "kind": "ImagePullIntent",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "image": IMAGE,
    }
    assert json.loads(pulled.read_text()) == {
        "kind": "ImagePulledRecord",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "lastUpdatedTime": "1970-01-01T00:00:00Z",
        "imageRef": "sha256:1",
        "credentialMapping": {
            NAME: {
                "kubernetesSecrets": [
                    {"uid": "u1", "namespace": "ns", "name": "mine", "credentialHash": "h1"}
                ]
            }
        },
    }


def test_a_record_of_another_kubelet_is_read_and_written_the_same() -> None:
    """As kubelet 1.36.2 wrote it after pulls with two secrets that hold one login."""
    login = Credential("kubelet", "let-me-in").hash
    secrets = [
        {"uid": f"u-{name}", "namespace": "default", "name": name, "credentialHash": login}
        for name in ("copy", "login")
    ]
    file = {
        "lastUpdatedTime": "2026-11-21T17:25:32Z",
        "imageRef": "sha256:50a1651b6516cabaeea93d3fcb6a1b8b486334f44b75c38cc8d173402f60db90",
        "credentialMapping": {"closed.registry.test/team/app": {"kubernetesSecrets": secrets}},
    }
    assert login == "48dea59eb41735411b35b0329f1df8317525da0b075f1696a1d1fec9b6d4a406"
    assert record_fields(record_of(file)) == file


def test_notes_of_pulls(tmp_path: Path) -> None:
    files = PullRecordFiles(tmp_path)
    assert files.intents() == []
    files.write_intent("b:1")
    files.write_intent("a:1")
    (tmp_path / "image_manager" / "pulling" / "sha256-broken").write_text("{")
    (tmp_path / "image_manager" / "pulling" / "sha256-x.tmp").write_text("{}")
    assert sorted(files.intents()) == ["a:1", "b:1"]
    assert files.has_intent("a:1")
    files.delete_intent("a:1")
    files.delete_intent("a:1")
    assert not files.has_intent("a:1")


ANN = ServiceAccountSource("ns", "ann", "u1")
BOB = ServiceAccountSource("ns", "bob", "u2")


def test_pods_of_a_recorded_account_need_no_pull_BACK_216() -> None:
    used = Credential("user", "pass", source=ANN)
    record = merged(None, "sha256:1", IMAGE, access_with(used), now_ns=1)
    assert needs_credentials(record, IMAGE)
    assert accounts_of([Credential("x", "y"), used]) == [ANN]
    assert not verify(record, IMAGE, [], [BOB, ANN]).must_pull
    remade = ServiceAccountSource("ns", "ann", "u9")
    assert verify(record, IMAGE, [MINE], [BOB, remade]).must_pull


def test_records_of_accounts_are_merged_and_stored_BACK_216() -> None:
    record: PulledRecord | None = None
    for access in (Access(accounts=(BOB,)), Access(secrets=(MINE,)), Access(accounts=(ANN, BOB))):
        record = merged(record, "sha256:1", IMAGE, access, now_ns=1)
    assert record is not None
    assert record.access[NAME] == Access(secrets=(MINE,), accounts=(ANN, BOB))
    fields = record_fields(record)
    assert fields["credentialMapping"][NAME]["kubernetesServiceAccounts"] == [
        {"uid": "u1", "namespace": "ns", "name": "ann"},
        {"uid": "u2", "namespace": "ns", "name": "bob"},
    ]
    assert record_of(json.loads(json.dumps(fields))).access == record.access
    alone = merged(None, "sha256:1", IMAGE, Access(accounts=(ANN,)), now_ns=1)
    assert "kubernetesSecrets" not in record_fields(alone)["credentialMapping"][NAME]
    opened = merged(record, "sha256:1", IMAGE, Access(every_pod=True), now_ns=2)
    assert opened.access[NAME] == Access(every_pod=True)


def test_records_are_counted_as_they_come_and_go_BACK_211(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PullRecordFiles(tmp_path).write_intent("left")
    metrics = ImageMetrics()
    files = PullRecordFiles(tmp_path, metrics)
    shown = []

    def show() -> None:
        shown.append((metrics.intents.values[()], metrics.records.values[()]))

    def listed(*_: object) -> None:
        raise AssertionError("the directory is listed again")

    monkeypatch.setattr(Path, "iterdir", listed)
    show()
    files.write_intent(IMAGE)
    files.write_intent(IMAGE)
    files.write(known(MINE))
    show()
    for image in (IMAGE, IMAGE, "left"):
        files.delete_intent(image)
    files.delete("sha256:1")
    show()
    assert shown == [(1, 0), (2, 1), (0, 0)]
