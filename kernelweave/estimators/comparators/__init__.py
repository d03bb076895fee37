"""Estimators of methods of others, to compare with."""
