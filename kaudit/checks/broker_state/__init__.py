"""Checks of a broker's state after loading the log: producers it forgets, logs it cannot load."""
