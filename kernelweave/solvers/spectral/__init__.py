"""Methods on leading eigenvectors."""
