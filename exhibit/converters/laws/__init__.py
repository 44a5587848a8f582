"""Laws in Markdown: their versions, their text, and questions about them."""
