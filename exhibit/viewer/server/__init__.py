"""`exhibit view`: one server on a loopback address over bundles and runs, with reviews that are saved at once."""
