"""Errors that say what is wrong, where, and what to do next."""

import errno


class ToolkitError(Exception):
    """Something outside the code is wrong: entry points print it as one line and exit 1."""

    def __init__(self, message: str = "") -> None:
        """Take the words, made fit for any terminal: a file's name need not be UTF-8."""
        super().__init__(printable(message))


_DISK = frozenset({errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT, errno.ENAMETOOLONG, errno.EFBIG})

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ESTALE, errno.EIO, errno.ENODEV})
_FILES = frozenset({errno.EMFILE, errno.ENFILE})


def disk_trouble(error: OSError) -> str:
    """Return the words for a disk that is full or not ours, or a file that is gone; raise any other error again."""
    where = printable(str(error.filename)) if error.filename else "the disk"
    trouble = f"{where}: {error.strerror or error}"
    if error.errno in _DISK or "temporary directory" in str(error):
        return f"{trouble}; make room, or choose another place"
    if error.errno in _GONE:
        return f"{trouble}; is the path right, or was it removed while the command ran? Then run the command again"
    if error.errno in _FILES:
        return f"{trouble}; raise the limit (ulimit -n), or use fewer --jobs"
    raise error


def printable(text: str) -> str:
    """Return a text that can be written as UTF-8: halves of surrogate pairs are written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class BundleError(ToolkitError):
    """A bundle, or the place where one should be written, breaks a promise."""


class SourceError(ToolkitError):
    """Raw benchmark files are missing, damaged or not what they should be."""


class DocumentError(ToolkitError):
    """One document cannot be read."""


class LimitError(DocumentError):
    """One document takes more time, memory or nesting than it may."""


class ServiceError(ToolkitError):
    """A server that was asked for help did not give it."""
