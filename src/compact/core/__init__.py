"""The ground floor: the line every message walks. Standard library only; no clock, no chance, no I/O."""
