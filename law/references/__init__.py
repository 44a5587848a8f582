"""References to UK law in running text: rules, practice directions, statutes, court guides and neutral citations."""

from law.references.corpus import ReferenceCorpus
from law.references.parse import references
from law.references.reference import Kind, Reference, credit

__all__ = ["Kind", "Reference", "ReferenceCorpus", "credit", "references"]
