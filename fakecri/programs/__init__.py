"""The programs of containers: which there are, what the main ones do, what listens on ports.

The programs themselves are in `fakesh`; `environment` is what they find in a container. What must
never happen here: a program that goes on after its container has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.programs.environment import invocation_in as invocation_in
    from fakecri.programs.socket_protocols import SERVE as SERVE
else:
    __getattr__, __dir__ = face(
        __name__, {"environment": "invocation_in", "socket_protocols": "SERVE"}
    )
