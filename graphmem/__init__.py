"""graphmem: local graph memory in one SQLite file."""

__version__ = "0.1.0"
