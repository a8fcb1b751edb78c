from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, overload

from kubecri import rpc
from kubecri.health import api_pb2
