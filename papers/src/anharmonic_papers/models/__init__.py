"""Models of others that the papers compare with."""
