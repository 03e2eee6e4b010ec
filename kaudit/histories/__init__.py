"""Histories that explain a finding: simulated schedules whose logs give the same finding, and what distinguishes them."""
