"""The steps that every conversion takes: flags, reading, patches, documents, the bundle."""
