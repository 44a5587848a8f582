"""Parts of the MAUD converter: its tables and its excerpts."""
