"""Data in memory: samples, views, graphs."""
