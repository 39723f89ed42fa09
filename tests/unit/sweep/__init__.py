"""Many runs at once: a row each, whatever lies between them."""
