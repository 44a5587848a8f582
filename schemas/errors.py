"""Errors that say what is wrong, where, and what to do next."""

from __future__ import annotations


class ToolkitError(Exception):
    """Something outside the code is wrong: entry points print it as one line and exit 1."""


class BundleError(ToolkitError):
    """A bundle, or the place where one should be written, breaks a promise."""


class SourceError(ToolkitError):
    """Raw benchmark files are missing, damaged or not what they should be."""


class DocumentError(ToolkitError):
    """One document cannot be read."""


class ServiceError(ToolkitError):
    """A server that was asked for help did not give it."""
