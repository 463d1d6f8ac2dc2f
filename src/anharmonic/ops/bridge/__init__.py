"""The bridge to the C library: loading it, planning a call, filling it, operators."""
