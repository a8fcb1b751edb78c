"""What is typed into the shell for a transcript: commands of kubectl in their order, with what they
read, and the few that are looked at while they run.

Commands whose output is a matter of luck wait first (`kubectl wait`), so that each prints what it
prints on any machine.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final

NAMESPACE: Final = "transcript"


@dataclass(frozen=True, slots=True)
class Step:
    """A command. `{dir}` in it is the directory with the manifests."""

    words: tuple[str, ...]
    stdin: str = ""
    ask: str = ""
    """A command that goes on: what is asked of the port that it says it listens on, a path of
    HTTP; then it is ended."""
    editor: str = ""
    """A sed script in place of an editor."""
    silent: bool = False
    """What it prints is a matter of luck."""

    @property
    def shown(self) -> str:
        return " ".join(("kubectl", *map(shlex.quote, self.words)))


def k(line: str, stdin: str = "", **more: str | bool) -> Step:
    """`kubectl` with the words of that line."""
    return Step(tuple(shlex.split(line)), stdin, **more)  # type: ignore[arg-type]


def in_namespace(name: str) -> tuple[Step, ...]:
    """Make a namespace; the commands that follow are about it."""
    return (
        k(f"create namespace {name}"),
        k(f"config set-context --current --namespace {name}", silent=True),
    )


WEB: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
  annotations:
    fakecri/main: "{prints: [{text: one}, {text: two}, {text: oops, stream: stderr}, {text: three}],
      serves: {port: 8080, body: hello}, stops: {code: 0}}"
    fakecri/look: "{prints: [{text: seen}]}"
spec:
  nodeName: node-1
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: localhost/busybox:1
    command: [serve, --port, "8080"]
    ports: [{name: http, containerPort: 8080}]
    env: [{name: COLOUR, value: green}]
    resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 32Mi}}
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  volumes:
  - name: scratch
    emptyDir: {}
"""
CRASH: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: crash
  annotations:
    fakecri/main: "{prints: [{text: going down}], exits: {code: 3, after_s: 15}}"
spec:
  nodeName: node-1
  containers:
  - {name: main, image: "localhost/busybox:1"}
"""
JOB: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: job
  annotations:
    fakecri/main: "{prints: [{text: begun}, {text: done, at_s: 2}], exits: {code: 0, after_s: 3}}"
spec:
  nodeName: node-1
  restartPolicy: Never
  containers:
  - {name: main, image: "localhost/busybox:1"}
"""
ECHO: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: echo}
spec:
  nodeName: node-1
  restartPolicy: Never
  containers:
  - {name: main, image: "localhost/busybox:1", command: [cat], stdin: true, stdinOnce: true}
"""
SETTINGS: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: green, size: "3"}
"""
CHANGED: Final = SETTINGS.replace("green", "blue")
WRONG: Final = SETTINGS.replace("\ndata:", "\ndota:")
FILES: Final = {
    "web.yaml": WEB,
    "crash.yaml": CRASH,
    "job.yaml": JOB,
    "echo.yaml": ECHO,
    "settings.yaml": SETTINGS,
    "changed.yaml": CHANGED,
    "wrong.yaml": WRONG,
}
_PATCH: Final = '{"metadata": {"annotations": {"note": "patched"}}}'
_JSON_PATCH: Final = '[{"op": "replace", "path": "/data/size", "value": "4"}]'
_COLUMNS: Final = "NAME:.metadata.name,NODE:.spec.nodeName,IMAGE:.spec.containers[*].image"
_LAST: Final = ".status.containerStatuses[0].lastState.terminated.exitCode"
_STATES: Final = "{range .status.containerStatuses[*]}{.name}={.restartCount} {.ready}{end}"

OBJECTS: Final = (
    *in_namespace(NAMESPACE),
    k("apply -f {dir}/settings.yaml"),
    k("apply -f {dir}/settings.yaml"),
    k("diff -f {dir}/settings.yaml"),
    k("diff -f {dir}/changed.yaml"),
    k("diff --server-side -f {dir}/changed.yaml"),
    k("apply -f {dir}/changed.yaml --dry-run=server -o name"),
    k("apply -f {dir}/changed.yaml"),
    k("get configmap settings -o yaml"),
    k("apply --server-side -f {dir}/settings.yaml"),
    k("apply --server-side --force-conflicts -f {dir}/settings.yaml"),
    k("apply --server-side --force-conflicts -f {dir}/settings.yaml -o yaml --show-managed-fields"),
    k("apply -f {dir}/wrong.yaml"),
    k("create -f {dir}/settings.yaml"),
    k("create configmap more --from-literal=a=1 --from-literal=b=2"),
    k("create secret generic password --from-literal=word=open"),
    k("create serviceaccount robot"),
    k("create service clusterip web --tcp=80:8080"),
    k("create -f -", SETTINGS.replace("settings", "typed")),
    k("get configmaps typed more"),
    k("get configmap typed -o jsonpath={.data.colour}"),
    k("get configmap typed -o json"),
    k("get configmaps -o name"),
    k("get secrets,services -o wide"),
    k("get serviceaccount robot"),
    k("describe configmap typed"),
    k("describe secret password"),
    k("label configmap typed tier=front"),
    k("label configmap typed tier=back"),
    k("label configmap typed tier=back --overwrite"),
    k("get configmaps -l tier=back --show-labels"),
    k("annotate configmap typed note=first"),
    k("label configmap typed tier-"),
    k(f"patch configmap typed --type=merge -p {shlex.quote(_PATCH)}"),
    k(f"patch configmap typed --type=json -p {shlex.quote(_JSON_PATCH)}"),
    k("edit configmap typed", editor="s/green/red/"),
    k("edit configmap typed", editor="s/nothing/else/"),
    k("get configmap typed -o yaml"),
    k("replace -f -", SETTINGS.replace("settings", "typed")),
    k("delete configmap typed more"),
    k("delete configmap typed"),
    k("get configmap typed"),
)
PODS: Final = (
    k("apply -f {dir}/web.yaml"),
    k("apply -f {dir}/web.yaml"),
    k("wait --for=condition=Ready pod/web --timeout=300s"),
    k("get pods"),
    k("get pod web -o wide"),
    k("get pod web -o yaml"),
    k(f"get pod web -o custom-columns={_COLUMNS}"),
    k(f"get pod web -o jsonpath={shlex.quote(_STATES)}"),
    k("get pods --field-selector=status.phase=Running -o name"),
    k("get pods --field-selector=status.phase=Failed"),
    k("describe pod web"),
    k("events --for pod/web"),
    k("get events --field-selector involvedObject.name=web,reason=Started"),
    k("logs web"),
    k("logs web --tail=2"),
    k("logs web --since=1h --timestamps"),
    k("logs web --limit-bytes=5"),
    k("logs web --previous"),
    k("logs web -c other"),
    k("logs nothing"),
    k("exec web -- echo hello"),
    k("exec web -- sh -c 'echo out; echo err >&2; exit 7'"),
    k("exec -i web -- cat", "typed\n"),
    k("exec -it web -- sh -c 'echo $COLOUR'"),
    k("exec web -- nothing-such"),
    k("exec web -c other -- true"),
    k("exec nothing -- true"),
    k("cp {dir}/settings.yaml web:/tmp/settings.yaml"),
    k("exec web -- cat /tmp/settings.yaml"),
    k("cp web:/tmp/settings.yaml {dir}/back.yaml", silent=True),  # prints what tar says, or ends
    k("cp web:/tmp/none.yaml {dir}/none.yaml", silent=True),
    k("apply --dry-run=server -f {dir}/back.yaml"),
    k("port-forward pod/web :8080", ask="/"),
    k("port-forward pod/web :8081", ask="/", silent=True),
    k("apply -f {dir}/echo.yaml"),
    k("wait --for=condition=Ready pod/echo --timeout=300s"),
    k("attach -i echo", "typed into it\n"),
    k("wait --for=jsonpath={.status.phase}=Succeeded pod/echo --timeout=300s"),
    k("logs echo"),
    k("apply -f {dir}/job.yaml"),
    k("wait --for=jsonpath={.status.containerStatuses[0].state} pod/job --timeout=300s"),
    k("wait --for=jsonpath={.status.phase}=Succeeded pod/job --timeout=300s"),
    k("logs -f job"),
    k("get pod job"),
    k("exec job -- true"),
    k("apply -f {dir}/crash.yaml"),
    k(f"wait --for=jsonpath={{{_LAST}}}=3 pod/crash --timeout=300s"),
    k("wait --for=jsonpath={.status.containerStatuses[0].restartCount}=1 pod/crash --timeout=300s"),
    k("logs crash --previous"),
    k("delete pod crash echo job --grace-period=1"),
    k("debug web --image=localhost/busybox:1 --container=look --target=main -- echo seen"),
    k("wait --for=jsonpath={.status.ephemeralContainerStatuses[0].state.running} pod/web"),
    k("logs web -c look"),
    k("logs web"),
    k("get pod web -o jsonpath={.spec.ephemeralContainers}"),
)
SERVER: Final = (
    k("api-resources --api-group=coordination.k8s.io"),
    k("api-resources --api-group=node.k8s.io"),
    k("api-resources --api-group=certificates.k8s.io --verbs=list -o name"),
    k("explain pod.spec.nodeName"),
    k("explain lease.spec.holderIdentity"),
    k("auth can-i create pods"),
    k("auth whoami -o jsonpath={.status.userInfo.username}"),
    k("create token robot"),
    k("create token nothing"),
    k("proxy --port=0", ask=f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/robot"),
    k("get --raw /readyz"),
    k("get widgets"),
    k("get pods nothing"),
)
NODES: Final = (
    k("get nodes"),
    k("get node node-1 -o wide"),
    k("describe node node-1"),
    k("cordon node-1"),
    k("cordon node-1"),
    k("get nodes"),
    k("uncordon node-1"),
    k("taint node node-1 key=value:NoSchedule"),
    k("taint node node-1 key=value:NoSchedule"),
    k("get node node-1 -o jsonpath={.spec}"),
    k("taint node node-1 key-"),
    k("label node node-1 disk=fast"),
    k("drain node-1 --pod-selector=app=web"),
    k("drain node-1 --pod-selector=app=web --force --delete-emptydir-data --timeout=300s"),
    k("get pods"),
    k("uncordon node-1"),
    k("delete serviceaccount robot"),
    k("delete service web"),
)
STEPS: Final = (*OBJECTS, *PODS, *SERVER, *NODES)
