"""The steps of every conversion: flags, reading, patches, documents, the bundle."""
