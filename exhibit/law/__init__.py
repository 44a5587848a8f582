"""How legal text is made: words, sentences, headings, titles, parties, dates, references to law."""
