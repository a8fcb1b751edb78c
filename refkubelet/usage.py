"""The error of the command line. It imports nothing: `--help` must be quick."""


class UsageError(Exception):
    """A mistake in what the user gave; the text is all there is to say."""
