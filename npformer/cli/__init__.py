"""The commands of npformer, one in each file: they parse arguments, call the package and print results."""
