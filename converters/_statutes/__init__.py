"""Laws in Markdown: their paragraphs, their versions, and the questions that can be asked of them."""
