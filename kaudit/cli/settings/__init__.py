"""Configuration: kaudit.toml, [tool.kaudit], KAUDIT_* and flags, each value with its origin."""
