"""Functions that compute the rows of published tables, one module for each group of experiments."""
