"""What every layer may use: errors, seeds, threads and the few scikit-learn internals we rely on."""
