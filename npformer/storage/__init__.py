"""What leaves and enters the program: atomic writes, checksummed files, checkpoints, foreign JSON and text."""
