"""Pages and text that set ours beside the papers' numbers."""
