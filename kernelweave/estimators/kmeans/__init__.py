"""Estimators of the k-means family."""
