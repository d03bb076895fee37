"""Kernel k-means and what grows out of it: global search, MinMax, several views."""
