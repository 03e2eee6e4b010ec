"""Checks of records that are in the log again, or out of order, where no sequence shows it."""
