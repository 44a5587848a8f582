"""The analysis of legal text: words, sentences, headings, titles, parties, dates, and references to law."""
