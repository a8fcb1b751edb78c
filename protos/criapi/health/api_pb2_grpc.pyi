from typing import Any

from criapi.health import api_pb2
