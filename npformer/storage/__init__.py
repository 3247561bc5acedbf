"""Files and text from outside: atomic writes, checksummed files, checkpoints, foreign JSON, safe text."""
