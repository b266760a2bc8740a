"""Readers of file formats, found through the `graphmem.importers` entry points."""
