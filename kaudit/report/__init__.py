"""Findings and timelines to text and machine formats."""
