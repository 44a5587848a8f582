"""What every conversion does: open the source, add the documents, locate the gold, write the bundle."""
