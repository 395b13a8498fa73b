"""What every process of Ballast needs: settings, logs, private files, locks, traces; no contract."""
