"""Run the command line: `python -m npformer` is the command `npformer`."""

import sys

from npformer.cli.signals import handle_signals, let_signals_end, stopped, was_stopped


def main() -> int:
    """Run the command that the arguments of the process name, and return its exit status."""
    handle_signals()
    try:
        from npformer.cli.main import main as run  # after the handlers, because imports take time

        return run()
    except BaseException:
        if not was_stopped():
            raise
        return stopped()
    finally:
        let_signals_end()


if __name__ == "__main__":
    sys.exit(main())
