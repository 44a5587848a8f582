"""The analysis of legal text: words, sentences, headings, titles, parties, dates, references to law."""
