"""The programs that every fake container has, by name; the shell under its three names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fakecri.invocations.invocation import Program
from fakecri.programs.archive_programs import ARCHIVE_PROGRAMS
from fakecri.programs.built_in import BUILT_IN
from fakecri.programs.file_programs import FILE_PROGRAMS
from fakecri.programs.place_programs import PLACE_PROGRAMS
from fakecri.programs.printing_programs import PRINTING_PROGRAMS
from fakecri.programs.process_programs import PROCESS_PROGRAMS
from fakecri.programs.stream_programs import STREAM_PROGRAMS
from fakecri.programs.text_programs import TEXT_PROGRAMS
from fakecri.shell.sh import sh

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
