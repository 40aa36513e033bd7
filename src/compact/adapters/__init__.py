"""The wire dialects and frameworks that can be plugged in, one file each."""
