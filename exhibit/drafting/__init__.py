"""Drafts a benchmark from a folder of documents: questions come from playbooks and from the documents' text."""
