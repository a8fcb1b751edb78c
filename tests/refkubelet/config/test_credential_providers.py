"""CredentialProviderConfig: what is read of its files, and what is refused (CFG-014)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from refkubelet.config import ConfigErrors
from refkubelet.config.credentials.files import (
    CredentialProviders,
    load_credential_providers,
)
from refkubelet.config.credentials.providers import match_image_problem

V1 = "kubelet.config.k8s.io/v1"
TOKEN = {
    "serviceAccountTokenAudience": "a",
    "cacheType": "Token",
    "requireServiceAccount": True,
}


def provider(name: str = "cloud", **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "matchImages": ["*.reg.io"],
        "defaultCacheDuration": "1m",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        **fields,
    }


class Files:
    """A directory with configurations, and one with programs."""

    def __init__(self, root: Path) -> None:
        self.configs, self.bin = root / "configs", root / "bin"
        self.configs.mkdir()
        self.bin.mkdir()

    def write(self, *providers: Any, file: str = "a.yaml", **fields: Any) -> Path:
        value = {
            "apiVersion": V1,
            "kind": "CredentialProviderConfig",
            "providers": list(providers),
            **fields,
        }
        path = self.configs / file
        path.write_text(json.dumps(value, indent=1))
        for name in (entry["name"] for entry in providers if entry["name"].isalpha()):
            program = self.bin / name
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
        return path

    def load(self, path: Path, **options: Any) -> CredentialProviders:
        found = load_credential_providers(str(path), str(self.bin), **options)
        assert found is not None
        return found

    def problems(self, path: Path, **options: Any) -> list[str]:
        with pytest.raises(ConfigErrors) as raised:
            self.load(path, **options)
        return raised.value.problems


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_file_is_read_CFG_014(files: Files) -> None:
    env = [{"name": "A", "value": "b"}]
    path = files.write(provider(args=["x"], env=env, tokenAttributes=TOKEN), provider("other"))
    found = files.load(path)
    first, second = found.providers
    assert (first.name, second.name) == ("cloud", "other")
    assert (first.match_images, first.default_cache_s, first.args) == (("*.reg.io",), 60, ("x",))
    assert [(v.name, v.value) for v in first.env] == [("A", "b")]
    assert first.token_attributes is not None
    assert first.token_attributes.audience == "a"
    assert second.token_attributes is None
    assert found.bin_dir == files.bin


def test_a_directory_is_read_by_name_CFG_014(files: Files) -> None:
    files.write(provider("z"), file="10.json")
    files.write(provider("a"), file="20.yml")
    files.write(provider("m"), file="15.yaml", apiVersion="kubelet.config.k8s.io/v1alpha1")
    files.write(provider("no"), file="00.conf")
    (files.configs / "11.yaml").mkdir()
    assert [p.name for p in files.load(files.configs).providers] == ["z", "m", "a"]
    files.write(provider("z"), file="30.json")
    assert files.problems(files.configs) == [
        f'{files.configs}: duplicate provider name "z" found in configuration file(s)'
    ]


def test_what_is_missing_is_told_CFG_014(files: Files) -> None:
    assert load_credential_providers("", "") is None
    (problem,) = files.problems(files.configs)
    assert f"no configuration files found in directory {files.configs}" in problem
    (problem,) = files.problems(files.configs / "gone.yaml")
    assert problem.endswith("gone.yaml: cannot be read: no such file or directory")
    path = files.write(provider(), provider("other"))
    (files.bin / "cloud").unlink()
    (files.bin / "other").chmod(0o600)
    missing, locked = files.problems(path)
    assert f"plugin binary executable {files.bin / 'cloud'} did not exist" in missing
    assert "other cannot be executed" in locked or Path("/proc/self").owner() == "root"
    with pytest.raises(ConfigErrors) as raised:
        load_credential_providers(str(path), str(files.bin / "gone"))
    assert f"plugin binary directory {files.bin / 'gone'} did not exist" in str(raised.value)
    for flags in ((str(path), ""), ("", str(files.bin))):
        with pytest.raises(ConfigErrors, match=r"^--image-credential-provider-.* is missing"):
            load_credential_providers(*flags)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"name": "a/b"},
            "providers[0].name: Invalid value: \"a/b\": provider name cannot contain '/'",
        ),
        ({"name": "a b"}, "cannot contain spaces"),
        ({"name": "."}, "provider name cannot be '.'"),
        ({"name": ".."}, "provider name cannot be '..'"),
        ({"name": "a\0b"}, "zero byte"),
        ({"name": ""}, "providers[0].name: Required value"),
        ({"matchImages": []}, "providers[0].matchImages: Required value: at least 1 item"),
        (
            {"matchImages": ["a", "b:x"]},
            'matchImages: Invalid value: "b:x": match image is invalid',
        ),
        ({"defaultCacheDuration": None}, "providers[0].defaultCacheDuration: Required value"),
        (
            {"defaultCacheDuration": "-1s"},
            'defaultCacheDuration: Invalid value: "-1s": must be greater than or equal to 0',
        ),
        ({"apiVersion": None}, "providers[0].apiVersion: Required value"),
        ({"apiVersion": "v3"}, 'providers[0].apiVersion: Unsupported value: "v3"'),
        ({"comment": "x"}, "unknown key 'comment', wanted one of: name, matchImages,"),
    ],
)
def test_a_wrong_provider_is_refused_CFG_014(
    files: Files, fields: dict[str, Any], told: str
) -> None:
    (problem,) = files.problems(files.write(provider(**fields)))
    assert told in problem
    assert problem.startswith(f"{files.configs / 'a.yaml'}:")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"serviceAccountTokenAudience": ""}, "serviceAccountTokenAudience: Required value"),
        ({"requireServiceAccount": None}, "requireServiceAccount: Required value"),
        ({"cacheType": ""}, "cacheType: Required value: cacheType is required to be set"),
        ({"cacheType": "Planet"}, 'cacheType: Unsupported value: "Planet": supported values: '),
        (
            {"requireServiceAccount": False, "requiredServiceAccountAnnotationKeys": ["a"]},
            "AnnotationKeys: Forbidden: requireServiceAccount cannot be false",
        ),
        (
            {"optionalServiceAccountAnnotationKeys": ["a b"]},
            'Keys: Invalid value: "a b": name part',
        ),
        ({"optionalServiceAccountAnnotationKeys": ["x", "x"]}, 'Duplicate value: "x"'),
        (
            {
                "optionalServiceAccountAnnotationKeys": ["X/x"],
                "requiredServiceAccountAnnotationKeys": ["X/x"],
            },
            'tokenAttributes: Invalid value: ["X/x"]: annotation keys cannot be both',
        ),
    ],
)
def test_wrong_token_attributes_are_refused_CFG_014(
    files: Files, fields: dict[str, Any], told: str
) -> None:
    (problem,) = files.problems(files.write(provider(tokenAttributes={**TOKEN, **fields})))
    assert told in problem
    assert "providers[0].tokenAttributes" in problem


def test_token_attributes_belong_to_v1_CFG_014(files: Files) -> None:
    entry = provider(tokenAttributes=TOKEN)
    path = files.write(entry, apiVersion="kubelet.config.k8s.io/v1beta1")
    (problem,) = files.problems(path)
    assert "only kubelet.config.k8s.io/v1 has this field" in problem
    path = files.write({**entry, "apiVersion": "credentialprovider.kubelet.k8s.io/v1alpha1"})
    (problem,) = files.problems(path)
    assert "only supported for credentialprovider.kubelet.k8s.io/v1 API version" in problem
    path = files.write(entry)
    (problem,) = files.problems(path, tokens_on=False)
    assert "KubeletServiceAccountTokenForCredentialProviders feature gate is disabled" in problem


def test_all_mistakes_are_told_at_once_CFG_014(files: Files) -> None:
    files.write(provider("a b", matchImages=[]), file="a.yaml")
    files.write(file="b.yaml", kind="Pod", apiVersion="v1")
    (files.configs / "c.yaml").write_text("{")
    (files.configs / "d.yaml").write_text("- 1")
    problems = files.problems(files.configs)
    assert [Path(p.split(":")[0]).name for p in problems] == [
        *("a.yaml", "a.yaml", "b.yaml", "b.yaml", "c.yaml", "d.yaml")
    ]


def test_no_providers_are_refused_CFG_014(files: Files) -> None:
    (problem,) = files.problems(files.write())
    assert problem.endswith("providers: Required value: at least 1 item in plugins is required")


@pytest.mark.parametrize(
    ("image", "fits"),
    [
        ("gcr.io", True),
        ("*.*.reg.io:8080/a/b", True),
        ("[::1]:5000/a", True),
        ("reg.io/a%20b", True),
        ("", False),
        ("https://gcr.io", True),  # as upstream; it covers nothing
        ("reg.io/%zz", False),
        ("a b.io", False),
    ],
)
def test_what_an_entry_of_match_images_is_CFG_014(image: str, fits: bool) -> None:
    assert (match_image_problem(image) is None) is fits
