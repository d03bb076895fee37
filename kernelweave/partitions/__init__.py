"""What a clustering knows about its clusters: sums, means, norms, and who would move."""
