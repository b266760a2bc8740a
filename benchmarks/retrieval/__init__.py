"""Retrieval benchmarks: data as records, stores built by import, questions put to recall, figures."""
