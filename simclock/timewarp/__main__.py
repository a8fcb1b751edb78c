"""`python -m simclock.timewarp`."""

import sys

from simclock.timewarp.cli import main

sys.exit(main())
