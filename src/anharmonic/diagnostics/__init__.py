"""What models do and cost, as numbers: speed, memory, the limits of the machine."""
