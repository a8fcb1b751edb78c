"""Plain unittest: the fake in a background thread, a blocking gRPC client, no event loop.

python -m unittest test_agent_unittest
"""

import unittest

import grpc
from run_pod import Agent

import fakecri

IMAGE = "localhost/busybox:1"


class AgentTest(unittest.TestCase):
    def setUp(self) -> None:
        self.fake = self.enterContext(fakecri.serve(clock="manual"))
        self.agent = Agent(self.fake.endpoint)
        self.addCleanup(self.agent.close)
        self.agent.run_sandbox("shop")

    def test_starts_again_what_has_ended(self) -> None:
        self.fake.behaves(fakecri.exits(1, after_s=3600), container="web", attempt=0)
        first = self.agent.run_container("web", IMAGE)
        self.fake.advance(3599)
        self.assertEqual(first, self.agent.keep_running(first, "web", IMAGE, attempt=1))
        self.fake.advance(2)  # an hour of container time, no time of yours
        second = self.agent.keep_running(first, "web", IMAGE, attempt=1)
        self.assertEqual(self.agent.state(second), "CONTAINER_RUNNING")
        self.fake.assert_called("StartContainer", container="web", times=2)

    def test_tells_why_a_start_failed(self) -> None:
        with self.fake.on("StartContainer", container="web").fails("UNKNOWN", "no space left"):
            with self.assertRaises(grpc.RpcError) as failure:
                self.agent.run_container("web", IMAGE)
        self.assertIn("no space left", str(failure.exception))

    def test_sees_a_killed_container(self) -> None:
        container_id = self.agent.run_container("web", IMAGE)
        self.fake.kill("web", exit_code=137)
        self.assertEqual(self.agent.state(container_id), "CONTAINER_EXITED")


if __name__ == "__main__":
    unittest.main()
