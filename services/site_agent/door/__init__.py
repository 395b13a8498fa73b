"""The one door: task bytes in, answer bytes out."""
