"""Pages and text that compare our numbers with the papers'."""
