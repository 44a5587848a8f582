"""How the program runs: the command line, plug-ins by name, and the removal of secrets from the output."""
