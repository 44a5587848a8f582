"""What retrieval loses or gains when one setting or constant changes."""
