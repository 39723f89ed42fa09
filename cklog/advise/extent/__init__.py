"""Q, U, CI and CP: policies of check records."""
