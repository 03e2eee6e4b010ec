"""Answers to attempts as text for people and programs."""
