"""`python -m refkubelet` is the command `refkubelet`."""

import sys

from refkubelet.cli import main

sys.exit(main())
