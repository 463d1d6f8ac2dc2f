"""Data: tasks with their splits, metrics, sources and licences. Knows nothing of models."""
