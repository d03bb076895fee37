"""Measures of a partition, model selection, plots and reports."""
