"""The folder of a study: what lies where, who works on what, and how it stands."""
