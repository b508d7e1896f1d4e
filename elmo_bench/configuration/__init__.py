"""The configuration: its typed keys and its files."""
