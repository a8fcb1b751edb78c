from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, overload

from criapi import rpc
from criapi.health import api_pb2
