"""The doors to agent frameworks, one file each; each names the extra it needs."""
