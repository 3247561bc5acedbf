"""Run the command line: `python -m npformer` is the command `npformer`."""

import sys

from npformer.cli.main import main

sys.exit(main())
