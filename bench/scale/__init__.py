"""What time and memory grow with: documents, chunks, workers."""
