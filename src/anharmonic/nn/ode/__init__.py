"""Neural ODEs: continuous depth, solved adaptively."""
