"""`python -m fakecri` is the command `fakecri`."""

import sys

from fakecri.cli import main

sys.exit(main())
