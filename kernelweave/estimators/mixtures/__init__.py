"""Convex mixtures as estimators."""
