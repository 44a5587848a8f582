"""Errors, whose messages state the problem, the file and the remedy."""


class ToolkitError(Exception):
    """An error in the input or the environment, not in the code; commands print it as one line and exit with 1."""

    def __init__(self, message: str = "") -> None:
        super().__init__(escape_surrogates(message))


def describe_disk_error(error: OSError) -> str:
    """Return a message for an error of the disk, a path or the limit on open files; raise a broken pipe unchanged."""
    if isinstance(error, ConnectionError):
        raise error
    where = escape_surrogates(str(error.filename)) if error.filename else "the disk"
    remedy = "check the path, the free space and the limit on open files (ulimit -n), and run the command again"
    return f"{where}: {error.strerror or error}; {remedy}"


def escape_surrogates(text: str) -> str:
    """Return a text with lone surrogates escaped, so that it can be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class BundleError(ToolkitError):
    """A bundle is invalid, or the folder for a new bundle cannot be used."""


class SourceError(ToolkitError):
    """Raw benchmark files are missing, damaged or unexpected."""


class DocumentError(ToolkitError):
    """One document cannot be read."""


class LimitError(DocumentError):
    """One document exceeds a limit of time, memory or nesting."""


class ServiceError(ToolkitError):
    """A server failed to answer a request, or a required program is missing or does not start."""
