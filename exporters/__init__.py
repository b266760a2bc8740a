"""Writers of file formats, found through the `graphmem.exporters` entry points."""
