"""Real files of real systems, real Spark, real brokers, and damage to whole folders."""
