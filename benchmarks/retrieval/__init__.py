"""The retrieval benchmarks: data as records, stores built by import, questions answered by recall, figures."""
