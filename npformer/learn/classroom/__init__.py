"""For teachers: assignments from the exercises, and the grading of a whole class."""
