"""One file per format: its name is the format's name on the command line, `write(export, folder)` writes it."""

from exhibit.hub.exports._source import Cut, Export, Format, Words

__all__ = ["Cut", "Export", "Format", "Words"]
