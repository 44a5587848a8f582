"""Vector stores: one file each, named by `--store NAME[:ARGUMENT]`."""
