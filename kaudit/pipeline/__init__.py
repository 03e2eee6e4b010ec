"""Engine-neutral way from chunks to findings: columns, runs, joints, audit."""
