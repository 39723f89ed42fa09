"""Output queues of simulated operators, torn, loaded and replayed."""
