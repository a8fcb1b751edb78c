"""The web server of `staticPodURL` for kubelet programs."""

from __future__ import annotations

import aiohttp
import pytest

from kubelet_conformance.harness.manifest_server import ServedManifests


async def test_it_answers_as_it_is_told_and_knows_the_askers() -> None:
    server = ServedManifests()
    await server.start()
    try:
        async with aiohttp.ClientSession() as http:
            async with http.get(server.url) as answer:
                assert answer.status == 404
            server.answers("pods")
            two = [("X-Token", "a"), ("X-Token", "b")]
            async with http.get(server.url, headers=two) as answer:
                assert (answer.status, await answer.text()) == (200, "pods")
            sent = [pair for pair in server.asked[-1].headers if pair[0] == "X-Token"]
            assert sent == two
            server.status = 0
            with pytest.raises(aiohttp.ClientError):
                await http.get(server.url)
            assert len(server.asked) >= 3  # the client may ask once more
    finally:
        await server.close()
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get(server.url)
