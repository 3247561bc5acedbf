"""The commands, one a file: arguments in, the floors below do the work, text out."""
