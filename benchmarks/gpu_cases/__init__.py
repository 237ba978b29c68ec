"""What benchmarks/gpu.py measures: each file has some of its sections, functions (bench) -> whether all is well."""
