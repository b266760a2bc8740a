"""What people and agents change in the store: each verb one batch, shown by the log, taken back by undo."""
