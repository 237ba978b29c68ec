"""Splits out to and in from the layouts of other libraries: `export` and `import_`."""
