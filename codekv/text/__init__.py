"""Text, edits and positions; knows no syntax, tokens or editors."""
