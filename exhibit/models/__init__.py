"""What turns text into numbers or text: language models, embedders, rerankers; one file each, found by its name."""
