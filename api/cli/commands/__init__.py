"""The commands of ``ballast``, a file each."""
