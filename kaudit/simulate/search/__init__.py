"""Schedules of a scenario: drawn, tried for an outcome, and cut down to the events that it takes."""
