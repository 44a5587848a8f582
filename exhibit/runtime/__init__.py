"""How the program itself runs: the command line, parts by name (plug-ins), and secrets kept out of its output."""
