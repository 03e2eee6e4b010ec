"""Text of kafka-dump-log, in the layouts of every release."""
