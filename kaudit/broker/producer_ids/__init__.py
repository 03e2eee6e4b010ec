"""Where producer ids come from: blocks of 1000, their history, and the rules by which they are granted."""
