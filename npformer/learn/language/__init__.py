"""Lessons, guides and exercises in other languages than English."""
