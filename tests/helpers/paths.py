"""Folders that tests need."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the checkout
TESTS = ROOT / "tests"
ORACLE = TESTS / "oracle"
SHARED = ROOT.parent / "shared"  # corpora that are not part of the project
