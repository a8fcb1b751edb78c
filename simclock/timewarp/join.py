"""Becomes a program in the time of a page: `python -I -S join.py PAGE -- PROGRAM ARGUMENTS`.

It is run by its path, before every start of a program: Python then starts faster than with `-m`.
Of `simclock` it takes this package alone; the loops and clocks of the other would take three times
as long to import as everything that is needed here.
"""

import os
import sys

SIMCLOCK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    package = type(sys)("simclock")
    package.__path__ = [SIMCLOCK]
    sys.modules["simclock"] = package

    from simclock.timewarp.cli import main

    sys.exit(main(["--join", *sys.argv[1:]]))
