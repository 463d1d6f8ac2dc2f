"""Banks of resonators: a module, and features for small data sets."""
