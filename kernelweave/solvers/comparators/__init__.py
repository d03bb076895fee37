"""Methods by others, as baselines."""
