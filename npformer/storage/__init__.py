"""Files: atomic writes, checksummed files, checkpoints, and checks of settings."""
