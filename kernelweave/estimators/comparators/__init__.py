"""Estimators of methods by others, as baselines."""
