"""The Hugging Face Hub: publish, pull and export bundles, and write dataset cards."""
