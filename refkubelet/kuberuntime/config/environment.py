"""The environment of a container, and the references in its command and arguments (LIFE-137). Pure.

Of equal names env wins over envFrom, whose later sources win over earlier ones, and envFrom over
service variables. `$(X)` in an env value may refer to services, envFrom and earlier env entries.
Upstream: kubelet_pods.go: makeEnvironmentVariables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lightkube.models.core_v1 import EnvFromSource, EnvVar, FileKeySelector
from msgspec import Struct, field

from kubeobjects.golang.strconv import quoted
from refkubelet.kuberuntime.common.runtime_deps import CONFIG_MAP, SECRET, ApiObjects, ObjectKey
from refkubelet.kuberuntime.config.env_file import EnvFileError, EnvValues
from refkubelet.kuberuntime.config.service_environment import service_environment
from refkubelet.model.downward_api import (
    NodeAndPodFacts,
    VariableError,
    pod_field,
    resource_field,
)
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import is_static

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\)|)")
_NO_REFERENCE: Final = re.compile(r"\$\$?")  # after the last `)`
MAX_EXPANDED: Final = 16 * 1024 * 1024  # the longest message of the CRI

TOO_LONG: Final = (
    f"with its references replaced it would have more than {MAX_EXPANDED >> 20} MiB of variables "
    "or of arguments"
)


class EnvFile(Struct, frozen=True):
    """A file of variables in a volume: its path on the node and its variables; None: unreadable."""

    host_path: str
    values: EnvValues | None


FileKey = tuple[str, str]  # name of the volume, path inside it


class EnvironmentFacts(Struct, frozen=True):
    """The sources of a container's variables. `objects` None: standalone. `files`: the files of
    fileKeyRefs whose volumes exist."""

    around: NodeAndPodFacts = field(default_factory=NodeAndPodFacts)
    objects: ApiObjects | None = None
    files: Mapping[FileKey, EnvFile] = field(default_factory=dict)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`text` with each `$(NAME)` replaced; unknown references stay, `$$` is an escaped `$`. Raises
    `VariableError` if the result has more than `MAX_EXPANDED` characters.

    >>> expand("$(A)-$(B)-$$(A)-$x", {"A": "1"})
    '1-$(B)-$(A)-$x'
    """
    return expand_all((text,), variables)[0]


def expand_all(texts: Iterable[str], variables: Mapping[str, str]) -> list[str]:
    """`expand` for all words of a command; the limit is for all of them together."""
    expanded, room = [], MAX_EXPANDED
    for text in texts:
        pieces: list[str] = []
        for piece in _pieces(text, variables):
            room -= len(piece)
            if room < 0:
                raise VariableError(TOO_LONG)
            pieces.append(piece)
        expanded.append("".join(pieces))
    return expanded


def _pieces(text: str, variables: Mapping[str, str]) -> Iterator[str]:
    """The pieces of the text, with its references replaced."""
    at = 0
    for match in _references(text):
        yield text[at : match.start()]
        at = match.end()
        if match.group() in ("$", "$$"):
            yield "$"
        else:
            yield variables.get(match.group(1), match.group())
    yield text[at:]


def _references(text: str) -> Iterator[re.Match[str]]:
    """Each `$`, `$$` or `$(NAME)`. After the last `)` the end of a reference is not searched for:
    with thousands of `$(` that would take quadratic time."""
    end = text.rfind(")") + 1
    yield from _REFERENCE.finditer(text, 0, end)
    yield from _NO_REFERENCE.finditer(text, end)


def referenced_objects(container: Container) -> tuple[ObjectKey, ...]:
    """The ConfigMaps and Secrets that the container's variables come from, each once."""
    keys: list[ObjectKey] = []
    for source in container.envFrom or ():
        if source.configMapRef is not None:
            keys.append((CONFIG_MAP, source.configMapRef.name or ""))
        elif source.secretRef is not None:
            keys.append((SECRET, source.secretRef.name or ""))
    for variable in container.env or ():
        value = variable.valueFrom
        if value is not None and value.configMapKeyRef is not None:
            keys.append((CONFIG_MAP, value.configMapKeyRef.name or ""))
        elif value is not None and value.secretKeyRef is not None:
            keys.append((SECRET, value.secretKeyRef.name or ""))
    return tuple(dict.fromkeys(keys))


def references(text: str) -> frozenset[str]:
    """The names of all references in a text.

    >>> sorted(references("$(A)-$$(B)-$(C)"))
    ['A', 'C']
    """
    names = (m.group(1) for m in _references(text) if m.group() not in ("$", "$$"))
    return frozenset(names)


def referenced_files(container: Container) -> tuple[FileKey, ...]:
    """The files that the container's variables come from, each once."""
    sources = (variable.valueFrom for variable in container.env or ())
    keys = (s.fileKeyRef for s in sources if s is not None and s.fileKeyRef is not None)
    return tuple(dict.fromkeys((key.volumeName, key.path) for key in keys))


def environment(container: Container, pod: Pod, facts: EnvironmentFacts) -> dict[str, str]:
    """All variables of the container. Raises `VariableError` for a missing reference, and if the
    values of `env` have more than `MAX_EXPANDED` characters."""
    result, room = _services(pod, facts.objects), MAX_EXPANDED
    for source in container.envFrom or []:
        result.update(_from_source(source, pod, facts.objects))
    for variable in container.env or []:
        value = _value(variable, container, pod, facts, known=result)
        if value is not None:
            room -= len(value)
            if room < 0:
                raise VariableError(TOO_LONG)
            result[variable.name] = value
    return result


def _services(pod: Pod, objects: ApiObjects | None) -> dict[str, str]:
    """The service variables. Raises `VariableError` before the first list of services, but not for
    a static pod, which may be the API server itself."""
    if objects is None:
        return {}
    if objects.services is None and not is_static(pod):
        raise VariableError(
            "services have not yet been read at least once, cannot construct envvars"
        )
    links = pod.spec.enableServiceLinks is not False
    return service_environment(objects.services or (), _namespace(pod), links=links)


def _from_source(source: EnvFromSource, pod: Pod, objects: ApiObjects | None) -> dict[str, str]:
    reference = source.configMapRef or source.secretRef
    if reference is None:
        return {}
    key = (CONFIG_MAP if source.configMapRef is not None else SECRET, reference.name or "")
    data = _data(key, pod, objects, optional=bool(reference.optional))
    return {(source.prefix or "") + name: value for name, value in (data or {}).items()}


def _value(
    variable: EnvVar,
    container: Container,
    pod: Pod,
    facts: EnvironmentFacts,
    known: Mapping[str, str],
) -> str | None:
    """The variable's value; None for a missing optional reference. Raises `VariableError`."""
    source = variable.valueFrom
    if source is None:
        return expand(variable.value or "", known)
    if source.fieldRef is not None:
        return pod_field(source.fieldRef.fieldPath, pod, facts.around)
    if source.resourceFieldRef is not None:
        return resource_field(source.resourceFieldRef, container, pod, facts.around)
    if source.configMapKeyRef is not None:
        ref = source.configMapKeyRef
        key = (CONFIG_MAP, ref.name or "")
        return _key_of(key, ref.key, pod, facts.objects, optional=bool(ref.optional))
    if source.secretKeyRef is not None:
        secret = source.secretKeyRef
        key = (SECRET, secret.name or "")
        return _key_of(key, secret.key, pod, facts.objects, optional=bool(secret.optional))
    if source.fileKeyRef is not None:
        return _value_in_file(source.fileKeyRef, facts.files)
    raise VariableError(
        f"env {variable.name} of container {container.name}: valueFrom names no source that this "
        "kubelet knows (fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef)"
    )


def _key_of(
    key: ObjectKey, name: str, pod: Pod, objects: ApiObjects | None, *, optional: bool
) -> str | None:
    data = _data(key, pod, objects, optional=optional)
    if data is not None and name in data:
        return data[name]
    if optional:
        return None
    kind = "ConfigMap" if key[0] == CONFIG_MAP else "Secret"
    raise VariableError(f"couldn't find key {name} in {kind} {_namespace(pod)}/{key[1]}")


def _value_in_file(wanted: FileKeySelector, files: Mapping[FileKey, EnvFile]) -> str | None:
    """The value of a key in a file; an empty value counts as a missing key."""
    file = files.get((wanted.volumeName, wanted.path))
    if file is None:
        raise VariableError(
            f"cannot find the volume {quoted(wanted.volumeName)} referenced by FileKeyRef"
        )
    try:
        value = file.values.get(wanted.key) if file.values is not None else None
    except EnvFileError:
        value = None
    if value is None:
        raise VariableError("couldn't parse env file")  # the contents may be a secret
    if value:
        return value
    if wanted.optional:
        return None
    raise VariableError(
        f"environment variable key {quoted(wanted.key)} not found in file {quoted(file.host_path)}"
    )


def _data(
    key: ObjectKey, pod: Pod, objects: ApiObjects | None, *, optional: bool
) -> Mapping[str, str] | None:
    """The object's data; None for a missing optional object. Raises `VariableError`."""
    kind, name = key
    if objects is None:
        kind = "configMap" if kind == CONFIG_MAP else kind
        raise VariableError(f"couldn't get {kind} {_namespace(pod)}/{name}, no kubeClient defined")
    data = objects.data.get(key)
    if data is None and not optional:
        raise VariableError(f"{kind} {quoted(name)} not found")
    return data


def _namespace(pod: Pod) -> str:
    return pod.metadata.namespace or ""
