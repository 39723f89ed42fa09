"""Opening a folder, and the questions that each kind of run refuses."""
