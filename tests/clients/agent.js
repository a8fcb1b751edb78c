// A small agent on grpc-js: runs one container until it ends well, anew after each crash.
//   node agent.js API.PROTO SOCKET         (modules: @grpc/grpc-js, @grpc/proto-loader)
// Prints one line of JSON for each thing it has seen.
"use strict";
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [proto, socket] = process.argv.slice(2);
const definition = loader.loadSync(proto, { keepCase: true, defaults: true, enums: String, longs: String });
const { runtime: { v1: { RuntimeService } } } = grpc.loadPackageDefinition(definition);
const client = new RuntimeService(`unix:${socket}`, grpc.credentials.createInsecure());

const tell = (what) => console.log(JSON.stringify(what));
const call = (method, request, deadlineMs = 20000) =>
  new Promise((resolve, reject) => {
    const options = { deadline: new Date(Date.now() + deadlineMs) };
    client[method](request, options, (error, answer) => (error ? reject(error) : resolve(answer)));
  });

const POD = { metadata: { name: "shop", uid: "u1", namespace: "default" } };
const web = (attempt) => ({
  metadata: { name: "web", attempt },
  image: { image: "localhost/busybox:1" },
});

async function failure(method, request, deadlineMs) {
  try {
    await call(method, request, deadlineMs);
  } catch (error) {
    tell({ failed: method, code: grpc.status[error.code], details: error.details });
  }
}

async function main() {
  await failure("Version", {}, 300);
  await failure("ContainerStatus", { container_id: "nothing" });
  const events = client.GetContainerEvents({});
  const stopped = events[Symbol.asyncIterator]();
  const { pod_sandbox_id } = await call("RunPodSandbox", { config: POD });
  for (let attempt = 0, code = -1; code !== 0; attempt++) {
    const request = { pod_sandbox_id, config: web(attempt), sandbox_config: POD };
    const { container_id } = await call("CreateContainer", request);
    await call("StartContainer", { container_id });
    for (;;) {
      const { value } = await stopped.next();
      const ended = value.container_event_type === "CONTAINER_STOPPED_EVENT";
      if (ended && value.container_id === container_id) break;
    }
    code = (await call("ContainerStatus", { container_id })).status.exit_code;
    tell({ attempt, exit_code: code });
    if (code !== 0) await new Promise((resolve) => setTimeout(resolve, 200));
  }
  events.on("error", () => {});
  events.cancel();
  client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
