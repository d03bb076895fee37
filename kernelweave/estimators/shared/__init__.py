"""What estimators of several families use."""
