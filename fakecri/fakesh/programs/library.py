"""The programs that every fake container has, by name; the shell under its three names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fakecri.fakesh.invocations.invocation import Program
from fakecri.fakesh.programs.archive_programs import ARCHIVE_PROGRAMS
from fakecri.fakesh.programs.built_in import BUILT_IN
from fakecri.fakesh.programs.file_programs import FILE_PROGRAMS
from fakecri.fakesh.programs.place_programs import PLACE_PROGRAMS
from fakecri.fakesh.programs.printing_programs import PRINTING_PROGRAMS
from fakecri.fakesh.programs.process_programs import PROCESS_PROGRAMS
from fakecri.fakesh.programs.stream_programs import STREAM_PROGRAMS
from fakecri.fakesh.programs.text_programs import TEXT_PROGRAMS
from fakecri.fakesh.shell.sh import sh

PROGRAMS: Final[Mapping[str, Program]] = {
    **BUILT_IN,
    **FILE_PROGRAMS,
    **TEXT_PROGRAMS,
    **PRINTING_PROGRAMS,
    **PROCESS_PROGRAMS,
    **PLACE_PROGRAMS,
    **STREAM_PROGRAMS,
    **ARCHIVE_PROGRAMS,
    "sh": sh,
    "bash": sh,
    "ash": sh,
}
