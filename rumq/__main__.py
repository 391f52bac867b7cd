"""`python -m rumq` is `rumqd`."""

import sys

from rumq.cli.main import main

sys.exit(main())
