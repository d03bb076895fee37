"""What solvers of several families use: the choice of the best run, view weights, their exponent."""
