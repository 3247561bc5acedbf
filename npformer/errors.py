"""The one exception for mistakes that the user can mend."""


class UserError(ValueError):
    """A mistake in what was asked for: one sentence that says what is wrong, where, and what to do.

    The command line prints it without a traceback and exits with status 2.
    """
