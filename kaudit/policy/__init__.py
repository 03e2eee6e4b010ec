"""What a team has decided about findings: severities, accepted ones, baselines, limits. Results in, results out."""
