"""The steps of every conversion: open the source, add the documents, locate the gold, write the bundle."""
