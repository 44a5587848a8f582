"""One file per engine; the file name is the engine's name on the command line."""
