"""Printed figures of the tables, one module for each group of experiments."""
