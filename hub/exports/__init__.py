"""One file per format: its name is the format's name on the command line, `write(export, folder)` writes it."""
