"""The steps of every conversion: parse flags, read the source, apply patches, add documents, write the bundle."""
