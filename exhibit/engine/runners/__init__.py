"""One file per runner; its name is its name on the command line."""
