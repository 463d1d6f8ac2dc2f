"""models/sequence."""
