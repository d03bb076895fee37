"""From the name of a kernel to its values: formulas, bandwidths, neighbours."""
