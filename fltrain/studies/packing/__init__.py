"""A study as one small file, which is read, gone on with and verified like its folder. No torch."""
