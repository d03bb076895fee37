"""Pure functions, one folder for each family of methods: operator and arrays in, frozen result out."""
