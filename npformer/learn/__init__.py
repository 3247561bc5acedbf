"""Teaching: the course, the exercises, the bugs, the figures and the experiments."""
