"""Reports for programs: JSON, tables, and the formats of CI systems."""
