"""The decisions of a team about findings: severities, accepted ones, baselines, limits. Results in, results out."""
