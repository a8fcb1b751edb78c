"""What a process is to the kernel: who it is, what it may do, and the pipes that it writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.process.pipes import Collected as Collected
    from fakecri.process.pipes import Output as Output
else:
    __getattr__, __dir__ = face(__name__, {"pipes": "Collected Output"})
