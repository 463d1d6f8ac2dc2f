"""Tasks on graphs, one file per kind of data."""
