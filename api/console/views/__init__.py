"""What the console's pages show, without HTTP."""
