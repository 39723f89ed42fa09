"""How object stores are reached and read, without any."""
