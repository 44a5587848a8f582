"""Language models, embedders and rerankers: one file each, loaded by its name."""
