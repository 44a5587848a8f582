"""References to UK law in running text: rules, practice directions, statutes, court guides and neutral citations."""

from rag.references.corpus import ReferenceCorpus
from rag.references.parse import references
from rag.references.reference import Kind, Reference, credit

__all__ = ["Kind", "Reference", "ReferenceCorpus", "credit", "references"]
