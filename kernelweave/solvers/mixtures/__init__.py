"""Convex mixtures: priors of exemplars."""
