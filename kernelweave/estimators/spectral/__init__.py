"""Estimators on leading eigenvectors."""
