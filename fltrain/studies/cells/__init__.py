"""The cells of a study: what is trained, complete, under a name that follows from all of it."""
