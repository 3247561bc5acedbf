"""The code of the bugs, one file for each. Every file looks correct and has a bug: copy nothing from here."""
