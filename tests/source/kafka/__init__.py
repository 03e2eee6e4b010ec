"""Tests of kaudit.source.kafka."""
