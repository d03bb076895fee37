"""Estimators that look for a wide margin between two clusters."""
