"""All partitions of a scan: the plan, the audit of what only all of them show, findings."""
