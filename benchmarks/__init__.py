"""Benchmarks as ratios against named baselines measured in the same run, and against the hardware's floor."""
