"""Checks of what a broker does with the log: producers it forgets, logs it cannot load."""
