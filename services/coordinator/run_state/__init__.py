"""What a plan means for each site of a run, and where the run stands between two rounds."""
