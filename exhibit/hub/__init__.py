"""The Hugging Face Hub: the dataset card, and the publisher."""
