"""The code of the zoo: a file a bug. Each looks right, and none is: take nothing from here."""
