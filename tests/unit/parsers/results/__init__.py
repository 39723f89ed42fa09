"""Result files of a query."""
