// Pods that run, in a test of a controller in TypeScript: an API server and two nodes for each test.
//
//   npm install --save-dev typescript @types/node     and     pip install 'refkubelet[nodes]'
//   npx tsc --target es2022 --module commonjs pods_run.test.ts && node --test pods_run.test.js
//
// With a kubeconfig of your own (envtest, kind) leave `fakekubeapi` out.
import * as assert from "node:assert";
import { ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

const place = mkdtempSync(join(tmpdir(), "nodes-"));
const kubeconfig = join(place, "kubeconfig");
const ready = join(place, "ready");
const programs: ChildProcess[] = [];
let server = "";

function start(command: string, ...options: string[]): void {
  programs.push(spawn(command, options, { stdio: ["ignore", "ignore", "inherit"] }));
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (await isSo()) return;
    await sleep(50);
  }
  assert.fail(`not so after 30 s: ${what}`);
}

async function phase(name: string): Promise<string> {
  const answer = await fetch(`${server}/api/v1/namespaces/default/pods/${name}`);
  return (await answer.json()).status.phase;
}

async function create(name: string, node: string, annotations = {}): Promise<void> {
  const spec = { nodeName: node, restartPolicy: "Never", containers: [{ name: "main", image: "example.com/app:1" }] };
  const answer = await fetch(`${server}/api/v1/namespaces/default/pods`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ metadata: { name, annotations }, spec }),
  });
  assert.strictEqual(answer.status, 201);
}

before(async () => {
  start("fakekubeapi", "serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", kubeconfig);
  await until("the API server listens", () => existsSync(kubeconfig));
  server = /server: (\S+)/.exec(readFileSync(kubeconfig, "utf8"))![1];
  start("kubenodes", "--kubeconfig", kubeconfig, "--name", "worker", "--count", "2", "--ready-file", ready);
  await until("the nodes are ready", () => existsSync(ready));
});

after(async () => {
  for (const program of programs.reverse()) {
    const ended = new Promise((resolve) => program.once("exit", resolve));
    program.kill("SIGTERM");
    await ended;
  }
});

test("a pod runs on the node that it is bound to", async () => {
  await create("web", "worker-0");
  await until("web runs", async () => (await phase("web")) === "Running");
});

test("a pod brings along what its container does", async () => {
  await create("job", "worker-1", { "fakecri/main": "exits: {code: 3}" });
  await until("job has failed", async () => (await phase("job")) === "Failed");
});
