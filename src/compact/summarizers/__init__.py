"""Who writes the summary."""
