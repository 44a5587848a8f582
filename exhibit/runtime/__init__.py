"""How the program runs: the command line, plug-ins by name, and secrets kept out of the output."""
