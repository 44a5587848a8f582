"""Parts of the table converter: its columns and its documents."""
