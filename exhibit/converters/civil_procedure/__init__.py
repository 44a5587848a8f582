"""Modules of the converter for the Civil Procedure Rules (CPR) of England and Wales.

They read the documents, parse the citations in the answers, and find the cited sections.
"""
