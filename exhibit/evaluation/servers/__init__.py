"""The client for every system that a TOML file describes.

It sends the requests, reads answers and passages from the replies, and uploads documents.
"""
