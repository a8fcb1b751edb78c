"""A small shell with its programs, for fake containers: their files and pipes are memory.

`shell` is the language, `programs` what is in /bin, `invocations` one run of one program: what it
sees and where it writes. Nothing here knows containers or the CRI: of fakecri it uses `process`
alone, and the rest of fakecri uses the names below alone, so that a fake in which no program runs
imports nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeobjects.lazy import face

if TYPE_CHECKING:
    from fakecri.fakesh.invocations.files import Files as Files
    from fakecri.fakesh.invocations.files import with_users as with_users
    from fakecri.fakesh.invocations.host_directory import HostDirectory as HostDirectory
    from fakecri.fakesh.invocations.invocation import BROKEN_PIPE as BROKEN_PIPE
    from fakecri.fakesh.invocations.invocation import Invocation as Invocation
    from fakecri.fakesh.invocations.invocation import Program as Program
    from fakecri.fakesh.invocations.invocation import exec_failed as exec_failed
    from fakecri.fakesh.invocations.invocation import exit_code_of as exit_code_of
    from fakecri.fakesh.invocations.invocation import nothing as nothing
    from fakecri.fakesh.invocations.process_table import Entry as Entry
    from fakecri.fakesh.invocations.process_table import ProcessTable as ProcessTable
    from fakecri.fakesh.invocations.processes import Processes as Processes
    from fakecri.fakesh.programs.library import PROGRAMS as PROGRAMS
    from fakecri.fakesh.programs.network_programs import NetworkPrograms as NetworkPrograms
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "invocations.files": "Files with_users",
            "invocations.host_directory": "HostDirectory",
            "invocations.invocation": (
                "BROKEN_PIPE Invocation Program exec_failed exit_code_of nothing"
            ),
            "invocations.process_table": "Entry ProcessTable",
            "invocations.processes": "Processes",
            "programs.library": "PROGRAMS",
            "programs.network_programs": "NetworkPrograms",
        },
    )
