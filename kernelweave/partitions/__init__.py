"""What a clustering knows of its clusters: sums, means, norms, and who would move."""
