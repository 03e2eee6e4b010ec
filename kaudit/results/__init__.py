"""Results of audits as every format reads them: selected, limited, grouped into incidents, saved and read back."""
