"""Data in files: tables as text, binary arrays."""
