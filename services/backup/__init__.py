"""Backup files: a sealed stream, tables as lines that no dialect shows in, and the files of a home folder."""
