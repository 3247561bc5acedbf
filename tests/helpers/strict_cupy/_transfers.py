"""Counts of the transfers between host and device."""

from contextlib import contextmanager


class Transfers:
    """The numbers of arrays sent `to_host` (get, item, float, bool ...) and `to_device` (asarray ...)."""

    def __init__(self):
        self.reset()

    def reset(self):
        """Set the counts to zero."""
        self.to_host = 0
        self.to_device = 0

    def __repr__(self):
        return f"Transfers(to_host={self.to_host}, to_device={self.to_device})"


transfers = Transfers()


@contextmanager
def counted_transfers():
    """Yield a `Transfers` that contains, when the block has ended, the transfers made inside it."""
    before = transfers.to_host, transfers.to_device
    inside = Transfers()
    try:
        yield inside
    finally:
        inside.to_host = transfers.to_host - before[0]
        inside.to_device = transfers.to_device - before[1]
