"""What is typed into the shell for the rollouts of a Deployment. They need a cluster with a
Deployment controller; the node's part in them is to start, to report as ready and to stop the
pods."""

from __future__ import annotations

from typing import Final

from kubectl_steps import Step, in_namespace, k

DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: site}
spec:
  replicas: 3
  minReadySeconds: 1
  progressDeadlineSeconds: 30
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app: site}}
  template:
    metadata:
      labels: {app: site}
      annotations:
        fakecri/main: "{prints: [{text: open}], stops: {code: 0}}"
    spec:
      nodeName: node-1
      terminationGracePeriodSeconds: 5
      containers:
      - name: main
        image: localhost/busybox:1
        readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
"""
NEVER_READY: Final = DEPLOYMENT.replace('["true"]', '["false"]')
FILES: Final = {"site.yaml": DEPLOYMENT, "never-ready.yaml": NEVER_READY}
_READY: Final = "{.status.readyReplicas}"


def _rolled_out(replicas: int) -> tuple[Step, ...]:
    """Wait for the end of a rollout, for the pods of before to be gone, and look at all."""
    return (
        k("rollout status deployment/site --timeout=300s", silent=True),
        k(f"wait --for=jsonpath={_READY}={replicas} deployment/site --timeout=300s"),
        k("wait --for=jsonpath={.status.terminatingReplicas}=0 deployment/site --timeout=300s"),
        k("rollout status deployment/site"),
        k("get deployment site -o wide"),
        k("get replicasets -l app=site -o wide --sort-by=.metadata.name"),
        k("get pods -l app=site --field-selector=status.phase=Running"),
    )


STEPS: Final = (
    *in_namespace("rollouts"),
    k("apply -f {dir}/site.yaml"),
    *_rolled_out(3),
    k("logs deployment/site --all-pods=true --prefix=false"),
    k("exec deployment/site -- echo hello"),
    k("set image deployment/site main=localhost/busybox:2"),
    *_rolled_out(3),
    k("rollout history deployment/site"),
    k("rollout history deployment/site --revision=2"),
    k("rollout undo deployment/site"),
    *_rolled_out(3),
    k("scale deployment/site --replicas=1"),
    *_rolled_out(1),
    k("rollout pause deployment/site"),
    k("set env deployment/site COLOUR=green"),
    k("get replicasets -l app=site -o name"),
    k("rollout resume deployment/site"),
    *_rolled_out(1),
    k("apply -f {dir}/never-ready.yaml"),
    k("wait --for=condition=Progressing=False deployment/site --timeout=300s"),
    k("rollout status deployment/site"),
    k("get deployment site"),
    k("rollout undo deployment/site"),
    k("rollout status deployment/site --timeout=300s", silent=True),
    k("describe deployment site --show-events=false"),
    k("rollout restart deployment/site"),  # last: its time is in the names of what it makes
    k("rollout status deployment/site --timeout=300s", silent=True),
    k("get deployment site"),
    k("delete deployment site --cascade=foreground"),
    k("wait --for=delete pod -l app=site --timeout=300s", silent=True),
    k("get deployments,replicasets,pods"),
)
