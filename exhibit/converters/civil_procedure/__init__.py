"""Parts of the CPR converter: its documents, its citations, its search exports."""
