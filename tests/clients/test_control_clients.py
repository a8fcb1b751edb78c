"""The standard HTTP clients of Node, Go, Java, curl and aiohttp at the control socket.

Each sends a body of known length, one in chunks, and a second request on the same connection. Java
knows no unix sockets for HTTP: it goes through a port of this test, and asks for HTTP/2 first.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import pytest

import fakecri

NODE: Final = """
const http = require('http');
const agent = new http.Agent({keepAlive: true, maxSockets: 1});
function ask(method, path, pieces, headers) {
  return new Promise((resolve, reject) => {
    const where = {socketPath: process.argv[2], path, method, headers, agent};
    const request = http.request(where, (answer) => {
      let text = '';
      answer.on('data', (piece) => { text += piece; });
      answer.on('end', () => resolve([answer.statusCode, JSON.parse(text)]));
    });
    request.on('error', reject);
    for (const piece of pieces) request.write(piece);
    request.end();
  });
}
(async () => {
  const body = JSON.stringify({behaviors: [{container: 'web', exits: {code: 3}}]});
  const told = [await ask('POST', '/v1/rules', [body.slice(0, 9), body.slice(9)], {})];
  told.push(await ask('POST', '/v1/rules', [body], {'Content-Length': body.length}));
  told.push(await ask('GET', '/v1/rules', [], {}));
  agent.destroy();
  console.log(JSON.stringify(told.map(([status, rows]) => [status, rows.length])));
})();
"""
GO: Final = """
package main

import ("context"; "encoding/json"; "fmt"; "io"; "net"; "net/http"; "os"; "strings")

func main() {
	dial := func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", os.Args[1])
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, MaxConnsPerHost: 1}}
	body := `{"behaviors": [{"container": "web", "exits": {"code": 3}}]}`
	var told []string
	ask := func(method string, body io.Reader) {
		request, _ := http.NewRequest(method, "http://fake/v1/rules", body)
		answer, err := client.Do(request)
		if err != nil { panic(err) }
		var rows []any
		if err := json.NewDecoder(answer.Body).Decode(&rows); err != nil { panic(err) }
		answer.Body.Close()
		told = append(told, fmt.Sprintf("[%d,%d]", answer.StatusCode, len(rows)))
	}
	ask("POST", io.MultiReader(strings.NewReader(body)))
	ask("POST", strings.NewReader(body))
	ask("GET", nil)
	fmt.Println("[" + strings.Join(told, ",") + "]")
}
"""
JAVA: Final = """
import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

class Agent {
  static HttpClient client = HttpClient.newHttpClient();
  static String ask(HttpRequest.Builder request) throws Exception {
    var answer = client.send(request.build(), BodyHandlers.ofString());
    return "[" + answer.statusCode() + "," + (answer.body().split("\\"id\\":").length - 1) + "]";
  }
  public static void main(String[] words) throws Exception {
    var rules = URI.create("http://" + words[0] + "/v1/rules");
    var body = "{\\"behaviors\\": [{\\"container\\": \\"web\\", \\"exits\\": {\\"code\\": 3}}]}";
    var stream = BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body.getBytes()));
    System.out.println("[" + ask(HttpRequest.newBuilder(rules).POST(stream)) + ","
        + ask(HttpRequest.newBuilder(rules).POST(BodyPublishers.ofString(body))) + ","
        + ask(HttpRequest.newBuilder(rules)) + "]");
  }
}
"""
CURL: Final = """
body='{"behaviors": [{"container": "web", "exits": {"code": 3}}]}'
ask() {
  curl -sS --unix-socket "$1" http://fake/v1/rules -w '%{http_code}\\n' -o "$1.answer" "${@:2}"
  grep -c '"id"' "$1.answer"
}
printf '%s' "$body" | ask "$1" -X POST -T - -H 'Expect: 100-continue'
ask "$1" --http2 -d "$body"
ask "$1"
"""
THREE_ANSWERS: Final = [[201, 1], [201, 1], [200, 2]]


async def told_by(command: Sequence[str | Path]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, errors = await asyncio.wait_for(process.communicate(), 240)
    assert process.returncode == 0, errors.decode()
    return said.decode()


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(program), reason=f"not installed: {program}")


@pytest.fixture
def socket_path() -> Iterator[str]:
    with fakecri.serve() as fake:
        yield fake.control.removeprefix("unix://")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "file", "text"),
    [
        pytest.param(["node"], "agent.js", NODE, marks=needs("node"), id="node"),
        pytest.param(["go", "run"], "agent.go", GO, marks=needs("go"), id="go"),
    ],
)
async def test_clients_on_the_socket(
    command: list[str], file: str, text: str, socket_path: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text)
    told = await told_by([*command, tmp_path / file, socket_path])
    assert json.loads(told) == THREE_ANSWERS


@pytest.mark.slow
@needs("curl")
@needs("bash")
async def test_curl(socket_path: str) -> None:
    told = await told_by(["bash", "-c", CURL, "bash", socket_path])
    assert told.split() == ["201", "1", "201", "1", "200", "2"]


@asynccontextmanager
async def port_to(path: str) -> AsyncIterator[str]:
    """HOST:PORT that is the socket at `path`."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
        writer.close()

    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_unix_connection(path)
        await asyncio.gather(pass_on(reader, ours), pass_on(theirs, writer))

    server = await asyncio.start_server(joined, "127.0.0.1")
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"


@pytest.mark.slow
@needs("java")
async def test_java(socket_path: str, tmp_path: Path) -> None:
    (tmp_path / "Agent.java").write_text(JAVA)
    async with port_to(socket_path) as address:
        told = await told_by(["java", tmp_path / "Agent.java", address])
    assert json.loads(told) == THREE_ANSWERS


async def test_aiohttp(socket_path: str) -> None:
    body = {"behaviors": [{"container": "web", "exits": {"code": 3}}]}

    async def pieces() -> AsyncIterator[bytes]:
        yield json.dumps(body).encode()[:9]
        yield json.dumps(body).encode()[9:]

    connector = aiohttp.UnixConnector(path=socket_path, limit=1)
    async with aiohttp.ClientSession("http://fake", connector=connector) as session:
        told = [
            (answer.status, len(await answer.json()))
            for answer in [
                await session.post("/v1/rules", data=pieces()),
                await session.post("/v1/rules", json=body),
                await session.get("/v1/rules"),
            ]
        ]
    assert [list(row) for row in told] == THREE_ANSWERS
