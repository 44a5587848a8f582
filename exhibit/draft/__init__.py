"""A benchmark from a bare folder: questions drafted from playbooks and from what stands in the documents."""
