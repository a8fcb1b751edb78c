"""Becomes a program in the time of a page: `python -I -S join.py PAGE -- PROGRAM ARGUMENTS`.

It is run by its path, before every start of a program: Python then starts faster than with `-m`.
"""

import os
import sys

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))

if __name__ == "__main__":
    from simclock.timewarp.cli import main

    sys.exit(main(["--join", *sys.argv[1:]]))
